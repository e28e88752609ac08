"""A small Whisper: the spectrogram of a tone, training steps, and the tokens that its decoder chooses with a cache."""

import torch
import whisper
from whisper.audio import log_mel_spectrogram
from whisper.decoding import DecodingOptions, decode
from whisper.model import ModelDimensions, Whisper

torch.manual_seed(0)
dims = ModelDimensions(
    n_mels=80, n_audio_ctx=1500, n_audio_state=64, n_audio_head=4, n_audio_layer=2, n_vocab=51865, n_text_ctx=64,
    n_text_state=64, n_text_head=4, n_text_layer=2,
)  # fmt: skip
model = Whisper(dims)
torch.nn.init.normal_(model.decoder.positional_embedding, std=0.02)  # it has no values of its own
time = torch.arange(30 * 16000) / 16000
sound = 0.3 * torch.sin(2 * torch.pi * (220 + 40 * time) * time)
mel = log_mel_spectrogram(sound)
print("spectrogram", *(f"{v:.6f}" for v in (mel.mean(), mel.std(), mel.max(), mel.min())))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
tokens = (torch.arange(2 * 25) * 977 % 50000).reshape(2, 25)
for step in range(4):
    logits = model(torch.stack((mel, mel.flip(1))), tokens[:, :-1])
    loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    squares = [p.grad.double().pow(2).sum() for p in model.parameters() if p.grad is not None]
    print(
        f"step {step}: loss {loss.item():.6f} gradient {torch.stack(squares).sum().sqrt().item():.5f}",
        flush=True,
    )
    optimizer.step()
model.eval()
options = {"language": "en", "without_timestamps": True, "fp16": False, "sample_len": 12}
for name, more in (("greedy", {}), ("beams", {"beam_size": 3})):
    found = decode(model, mel, DecodingOptions(**options, **more))
    print(name, *found.tokens, f"{found.avg_logprob:.5f} {found.no_speech_prob:.6f}")
print("languages", f"{max(whisper.detect_language(model, mel)[1].values()):.6f}")
