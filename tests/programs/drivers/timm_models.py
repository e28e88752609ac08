"""Sixty families of timm at their smallest: one training step each."""

import timm
import torch
from _tell import step

NAMES = """
bat_resnext26ts beit_base_patch16_224 botnet26t_256 cait_xxs24_224 coat_tiny coatnet_pico_rw_224 convit_tiny convmixer_768_32
convnext_atto convnextv2_atto crossvit_tiny_240 cspresnet50 cs3darknet_s davit_tiny deit_tiny_patch16_224 densenet121 dla34
dpn48b edgenext_xx_small efficientformer_l1 efficientformerv2_s0 efficientnet_b0 efficientvit_b0 eva02_tiny_patch14_224
fastvit_t8 fbnetc_100 focalnet_tiny_srf gcresnext26ts gcvit_xxtiny gernet_s ghostnet_050 halonet26t hardcorenas_a hgnet_tiny
hrnet_w18_small inception_next_atto lambda_resnet26t lcnet_035 levit_128s maxvit_pico_rw_256 mixer_s32_224 mnasnet_050
mobilenetv2_035 mobilenetv3_small_050 mobilevit_xxs mobilevitv2_050 mobileone_s0 nfnet_l0 pit_ti_224 poolformer_s12 pvt_v2_b0
regnetx_002 repghostnet_050 repvgg_a0 repvit_m0_9 res2net50_26w_4s resmlp_12_224 resnest14d resnet18 rexnet_100 selecsls42
semnasnet_075 seresnext26ts skresnet18 starnet_s1 swin_s3_tiny_224 swinv2_cr_tiny_224 tiny_vit_5m_224 tinynet_e tresnet_m
twins_svt_small vgg11 visformer_tiny vit_tiny_patch16_224 vovnet39a xception41 xcit_nano_12_p16_224
""".split()  # noqa: SIM905  (a list literal of this length would be a page of quotes)

for name in NAMES:
    if not timm.is_model(name):
        continue
    torch.manual_seed(1)
    options = {"num_classes": 10}
    model = timm.create_model(name, **options).train()
    size = model.default_cfg["input_size"]
    for module in model.modules():  # dropout of whole paths multiplies rounding
        if hasattr(module, "drop_prob"):
            module.drop_prob = 0.0
    torch.manual_seed(2)
    step(name, model, model(torch.randn(2, *size)))
