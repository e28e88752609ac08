"""Metrics of torchmetrics on seeded predictions."""

import torch
import torchmetrics

torch.manual_seed(0)
scores, labels = torch.randn(60, 5).softmax(1), torch.randint(0, 5, (60,))
first, second = torch.randn(60), torch.randn(60)
FOR_CLASSES = (
    "Accuracy",
    "Precision",
    "Recall",
    "F1Score",
    "AUROC",
    "CohenKappa",
    "MatthewsCorrCoef",
    "JaccardIndex",
    "CalibrationError",
    "Specificity",
    "AveragePrecision",
    "HammingDistance",
)
FOR_NUMBERS = (
    "MeanSquaredError",
    "MeanAbsoluteError",
    "R2Score",
    "PearsonCorrCoef",
    "SpearmanCorrCoef",
    "ConcordanceCorrCoef",
    "ExplainedVariance",
    "CosineSimilarity",
    "SymmetricMeanAbsolutePercentageError",
    "KendallRankCorrCoef",
)
for name in FOR_CLASSES:
    metric = getattr(torchmetrics, name)(task="multiclass", num_classes=5)
    metric.update(scores[:30], labels[:30])
    metric.update(scores[30:], labels[30:])
    print(name, float(metric.compute()))
for name in FOR_NUMBERS:
    metric = getattr(torchmetrics, name)()
    pair = (first.reshape(6, 10), second.reshape(6, 10)) if name == "CosineSimilarity" else (first, second)
    metric.update(*pair)
    print(name, float(metric.compute()))
print("confusion", torchmetrics.ConfusionMatrix(task="multiclass", num_classes=5)(scores, labels).tolist())
pictures = torch.rand(2, 1, 32, 32), torch.rand(2, 1, 32, 32)
print("ssim", float(torchmetrics.image.StructuralSimilarityIndexMeasure(data_range=1.0)(*pictures)))
print("psnr", float(torchmetrics.image.PeakSignalNoiseRatio(data_range=1.0)(*pictures)))
