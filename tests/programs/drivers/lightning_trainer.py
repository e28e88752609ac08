"""A Lightning trainer with validation, a checkpoint, clipping and accumulation, and a run that goes on from the checkpoint."""

import logging
import warnings

import lightning
import torch
from torch.utils.data import DataLoader, TensorDataset

warnings.simplefilter("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Dropout(0.1), torch.nn.Linear(16, 1)
        )
        self.losses = []

    def training_step(self, batch, index):
        loss = torch.nn.functional.mse_loss(self.layers(batch[0]), batch[1])
        self.log("train_loss", loss)
        self.losses.append(loss.item())
        return loss

    def validation_step(self, batch, index):
        self.log("val_loss", torch.nn.functional.mse_loss(self.layers(batch[0]), batch[1]))

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), lr=0.01)
        return {"optimizer": optimizer, "lr_scheduler": torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)}


lightning.seed_everything(3, verbose=False)
x = torch.randn(64, 8)
data = TensorDataset(x, x.sum(1, keepdim=True).sin())
train, valid = DataLoader(data, 8, shuffle=True), DataLoader(data, 16)
options = {
    "accelerator": "cpu",
    "logger": False,
    "enable_progress_bar": False,
    "enable_model_summary": False,
    "gradient_clip_val": 0.5,
    "accumulate_grad_batches": 2,
    "default_root_dir": ".",
}
model = Model()
trainer = lightning.Trainer(max_epochs=2, **options)
trainer.fit(model, train, valid)
print("losses", *model.losses)
print("validation", *(f"{key} {float(value)}" for key, value in sorted(trainer.callback_metrics.items())))
trainer.save_checkpoint("model.ckpt")
again = Model()
more = lightning.Trainer(max_epochs=3, **options)
more.fit(again, train, valid, ckpt_path="model.ckpt")
print("resumed", *again.losses)
