"""A sentence encoder with a random BERT: embeddings, similarities, and a training step of three losses."""

import torch
from sentence_transformers import SentenceTransformer, losses, models
from transformers import BertConfig, BertModel, BertTokenizerFast

words = [
    "the",
    "a",
    "cat",
    "dog",
    "sat",
    "ran",
    "on",
    "under",
    "mat",
    "tree",
    "and",
    "big",
    "small",
    "red",
    "blue",
]
with open("vocab.txt", "w") as stream:
    stream.write("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words]))
torch.manual_seed(1)
BertTokenizerFast("vocab.txt").save_pretrained("bert")
config = BertConfig(
    vocab_size=20, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64
)
BertModel(config).save_pretrained("bert")
word = models.Transformer("bert", max_seq_length=16)
encoder = SentenceTransformer(
    modules=[word, models.Pooling(word.get_word_embedding_dimension())], device="cpu"
)
texts = ["the cat sat on the mat", "a dog ran under the tree", "the big red dog sat", "a small blue cat ran"]
with torch.no_grad():
    vectors = encoder.encode(texts, convert_to_tensor=True, show_progress_bar=False)
print("norms", *vectors.norm(dim=1).tolist())
print("similarity", *encoder.similarity(vectors, vectors).flatten().tolist())
features = [encoder.tokenize(texts[:2]), encoder.tokenize(texts[2:])]
encoder.eval()  # without dropout
for loss, labels in (
    (losses.CosineSimilarityLoss(encoder), torch.tensor([0.2, 0.9])),
    (losses.MultipleNegativesRankingLoss(encoder), None),
    (losses.ContrastiveLoss(encoder), torch.tensor([1, 0])),
):
    encoder.zero_grad()
    value = loss([dict(f) for f in features], labels)
    value.backward()
    norm = torch.stack([p.grad.pow(2).sum() for p in encoder.parameters() if p.grad is not None]).sum().sqrt()
    print(type(loss).__name__, value.item(), norm.item())
