# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 4. Reinforcement learning: from the policy gradient to GRPO
#
# At the end of this chapter you have derived the policy gradient, PPO's clipped ratio, GAE, GRPO's advantage and the estimators of the KL
# divergence, each checked by hand, and a small transformer has learned to add with nothing but a rule that says right or wrong. It takes about 60
# minutes. You need chapter 1, and to know what a language model's loss is.
#
# **第 4 章 强化学习：从策略梯度到 GRPO。** 学完本章，你会推导并亲手验证策略梯度、PPO 的截断比率、GAE、GRPO 的优势函数以及 KL 散度的
# 几种估计；一个小型 Transformer 将仅凭“对或错”的规则奖励学会加法。约需 60 分钟。

# %% [markdown]
# ## 4.1 A result first
#
# The task: the prompt is `a+b=` with one digit each, the answer has two digits, and the reward is 1 if the answer is right and 0
# if not. No answer is ever shown. The policy is a transformer with one layer; its dictionary has the ten digits, `+` and `=`.
#
# **先看结果。** 提示为 `a+b=`（各一位数字），答案为两位数字；答对奖励 1，否则为 0，从不展示正确答案。策略是只有一层的 Transformer。

# %%
import msadapter

msadapter.install()

import math

import torch
from lesson import FAST, check, plot, stored
from torch import nn
from torch.nn import functional as F

PLUS, EQUALS, LARGEST = 10, 11, 3 if FAST else 5  # digits below LARGEST


class Policy(nn.Module):
    """A transformer with one layer over the twelve tokens. It returns the scores of the next token at every place."""

    def __init__(self, width=64):
        super().__init__()
        self.token, self.place = nn.Embedding(12, width), nn.Embedding(6, width)
        self.layer = nn.TransformerEncoderLayer(
            width, 4, 2 * width, dropout=0.0, batch_first=True, norm_first=True
        )
        self.head = nn.Linear(width, 12)

    def forward(self, ids):
        n = ids.shape[1]
        mask = nn.Transformer.generate_square_subsequent_mask(n)
        return self.head(
            self.layer(self.token(ids) + self.place(torch.arange(n)), src_mask=mask, is_causal=True)
        )


def prompts(count, generator):
    a, b = torch.randint(LARGEST, (2, count), generator=generator)
    return torch.stack([a, torch.full_like(a, PLUS), b, torch.full_like(a, EQUALS)], 1)


@torch.no_grad()
def sample(policy, ids, generator):
    """The ids with two more tokens, drawn from the policy."""
    for _ in range(2):
        chances = policy(ids)[:, -1].softmax(-1)
        ids = torch.cat([ids, torch.multinomial(chances, 1, generator=generator)], 1)
    return ids


def reward(ids):
    """1.0 where the last two tokens are the sum of the two digits, else 0.0. The rule is all that the policy learns from."""
    right = ids[:, 0] + ids[:, 2]
    return ((ids[:, 4] == right // 10) & (ids[:, 5] == right % 10)).float()


def log_probabilities(policy, ids):
    """The log-probability of each of the two tokens of the answer, of shape (samples, 2)."""
    scores = policy(ids[:, :-1])[:, 3:].log_softmax(-1)
    return scores.gather(-1, ids[:, 4:, None]).squeeze(-1)


assert reward(torch.tensor([[1, PLUS, 2, EQUALS, 0, 3], [1, PLUS, 2, EQUALS, 3, 0]])).tolist() == [1.0, 0.0]

# %% [markdown]
# ## 4.2 The policy gradient
#
# We want to raise $J(\theta) = \mathbb{E}_{y\sim\pi_\theta}[R(y)]$. With $\nabla \pi = \pi\,\nabla\log\pi$:
# $$\nabla J = \mathbb{E}_{y\sim\pi_\theta}\bigl[R(y)\,\nabla\log\pi_\theta(y)\bigr].$$
# So sample answers, and raise the log-probability of each by its reward. Let us check this where the expectation can be computed in full:
# three actions with scores $s$.
#
# **策略梯度。** 目标是提高 $J(\theta)$。由 $\nabla\pi=\pi\nabla\log\pi$ 得到上式：采样答案，按奖励提高其对数概率。
# 先在可以精确求期望的情形（三个动作）下验证。

# %%
scores = torch.tensor([0.5, -1.0, 0.2], dtype=torch.float64, requires_grad=True)
rewards = torch.tensor([1.0, 0.0, 3.0], dtype=torch.float64)
(exact,) = torch.autograd.grad((scores.softmax(0) * rewards).sum(), scores)

chances = scores.softmax(0).detach()
by_hand = torch.zeros(3, dtype=torch.float64)
for action in range(3):
    (up,) = torch.autograd.grad(scores.log_softmax(0)[action], scores)
    by_hand += chances[action] * rewards[action] * up
print(exact, by_hand)
assert torch.allclose(exact, by_hand, atol=1e-12)

# %% [markdown]
# **Predict before you run:** if 10 is added to every reward, does the gradient change? And the variance of its estimate from samples?
#
# **先猜再运行：** 若所有奖励都加 10，梯度会变吗？由样本估计的方差呢？


# %%
def estimates(baseline, count=4000):
    """Gradients that single samples give for the rewards plus 10 minus the baseline."""
    actions = torch.multinomial(chances, count, replacement=True, generator=torch.Generator().manual_seed(1))
    up = F.one_hot(actions, 3) - chances  # the gradient of log softmax
    return up * (rewards + 10 - baseline)[actions][:, None]


mean = (chances * (rewards + 10)).sum()
for name, baseline in (("without a baseline", 0.0), ("with the mean reward as baseline", mean)):
    drawn = estimates(baseline)
    print(f"{name}: mean {[round(v, 2) for v in drawn.mean(0).tolist()]}, variance {drawn.var(0).sum():.2f}")
assert estimates(mean).var(0).sum() < estimates(0.0).var(0).sum() / 5
assert torch.allclose(estimates(mean).mean(0), exact, atol=0.1)

# %% [markdown]
# The gradient stays, because $\mathbb{E}[\nabla\log\pi] = 0$; the variance shrinks. What remains of a reward after its baseline is the
# *advantage*.
#
# 期望不变（因为 $\mathbb{E}[\nabla\log\pi]=0$），方差大减。减去基线后的奖励称为**优势**。
#
# ## 4.3 PPO: several steps with the same samples
#
# Samples are expensive, so they are used for several steps. The policy then differs from the one that drew them, which the ratio
# $\rho = \pi_\theta / \pi_{\text{old}}$ corrects. PPO keeps it near 1:
# $$L = -\min\bigl(\rho A,\ \operatorname{clip}(\rho, 1-\epsilon, 1+\epsilon)\,A\bigr).$$
#
# **PPO：同一批样本用多步。** 用比率 $\rho$ 修正策略的变化，并把它截断在 1 附近。


# %%
def clipped_loss(new, old, advantage, epsilon=0.2):
    """PPO's loss for each token, from log-probabilities of the same shape as the advantage."""
    ratio = (new - old).exp()
    return -torch.minimum(ratio * advantage, ratio.clamp(1 - epsilon, 1 + epsilon) * advantage)


ratios = torch.tensor([0.5, 0.9, 1.0, 1.1, 1.5], dtype=torch.float64)
new = ratios.log().requires_grad_()
for advantage, flat in (
    (1.0, [False, False, False, False, True]),
    (-1.0, [True, False, False, False, False]),
):
    (g,) = torch.autograd.grad(clipped_loss(new, torch.zeros(5, dtype=torch.float64), advantage).sum(), new)
    print(f"A = {advantage:+.0f}: gradient {[round(v, 2) for v in g.tolist()]}")
    assert ((g == 0) == torch.tensor(flat)).all()
told = stored("clipped_loss")  # the same formula in real PyTorch
ours = clipped_loss(torch.tensor(told["new"]), torch.tensor(told["old"]), torch.tensor(told["advantage"]))
assert torch.allclose(ours, torch.tensor(told["loss"]), atol=1e-6)

# %% [markdown]
# A good action whose ratio is already above $1+\epsilon$ gets no further push, a bad one below $1-\epsilon$ none either. In the other two
# corners the gradient stays, so that a mistake can be taken back.
#
# 好动作的比率超过 $1+\epsilon$ 后不再被推高，坏动作低于 $1-\epsilon$ 后不再被压低；另外两个角落仍保留梯度，以便纠正错误。
#
# > **Exercise 4.1.** $\rho = 1.5$, $A = 2$, $\epsilon = 0.2$. What is the loss of this token?
# >
# > **练习 4.1。** 求该 token 的损失。

# %%
loss_4_1 = ...
check("4.1", loss_4_1)

# %% [markdown]
# ## 4.4 GAE: advantages with a value function
#
# PPO's classic form has a second network that predicts the return, $V(s_t)$. Its errors are $\delta_t = r_t + \gamma V(s_{t+1}) - V(s_t)$, and
# generalised advantage estimation sums them up, with $\lambda$ between one step and the whole episode:
# $$A_t = \sum_{l\ge0} (\gamma\lambda)^l\,\delta_{t+l}.$$
#
# **GAE：** 用价值网络的误差 $\delta_t$ 的折扣和作为优势，$\lambda$ 在“单步”和“整段”之间折中。


# %%
def gae(rewards, values, gamma=0.99, lam=0.95):
    """Advantages of an episode. values has one number more than rewards: that of the state after the last step."""
    advantages, following = torch.zeros_like(rewards), 0.0
    for t in reversed(range(len(rewards))):
        delta = rewards[t] + gamma * values[t + 1] - values[t]
        following = delta + gamma * lam * following
        advantages[t] = following
    return advantages


r, v = torch.tensor([0.0, 0.0, 1.0]), torch.tensor([0.2, 0.5, 0.6, 0.0])
one_step = gae(r, v, lam=0.0)
whole = gae(r, v, gamma=1.0, lam=1.0)
assert torch.allclose(one_step, r + 0.99 * v[1:] - v[:-1])
assert torch.allclose(whole, torch.tensor([1.0, 1.0, 1.0]) - v[:-1])  # the return minus the value
print(gae(r, v))

# %% [markdown]
# > **Exercise 4.2.** Compute by hand: rewards `[1, 0]`, values `[0.5, 0.25, 0]`, $\gamma = 1$, $\lambda = 0.5$. Which two advantages result?
# >
# > **练习 4.2。** 手算上述两个优势。

# %%
advantages_4_2 = ...  # [?, ?]
check("4.2", advantages_4_2)

# %% [markdown]
# ## 4.5 GRPO: the group is the baseline
#
# GRPO needs no value network. It draws $G$ answers to the same prompt, and the advantage of each is its reward, normalised in the group:
# $$A_i = \frac{R_i - \operatorname{mean}(R)}{\operatorname{std}(R) + \epsilon}.$$
#
# **GRPO：以组为基线。** 对同一提示采样 $G$ 个答案，用组内标准化后的奖励作为优势，不需要价值网络。


# %%
def group_advantages(rewards, group):
    """Rewards, group after group, normalised within each group with the unbiased standard deviation."""
    grouped = rewards.view(-1, group)
    return ((grouped - grouped.mean(1, keepdim=True)) / (grouped.std(1, keepdim=True) + 1e-4)).flatten()


found = group_advantages(torch.tensor([1.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 1.0]), 4)
print(found)
assert torch.allclose(
    found[:4], torch.tensor([1.0, -1.0, -1.0, 1.0]) * 0.5 / (math.sqrt(1 / 3) + 1e-4), atol=1e-6
)
assert (found[4:] == 0).all()  # a group whose answers are all right teaches nothing

# %% [markdown]
# > **Exercise 4.3.** The rewards of a group of three are `[0, 0, 3]`. Which advantages result (without $\epsilon$)?
# >
# > **练习 4.3。** 一组三个奖励为 `[0, 0, 3]`，优势是多少（忽略 $\epsilon$）？

# %%
advantages_4_3 = ...  # [?, ?, ?]
check("4.3", advantages_4_3)

# %% [markdown]
# ## 4.6 The KL divergence keeps the policy near its reference
#
# From samples of $\pi$, with $d = \log\pi_{\text{ref}} - \log\pi$, there are three estimators of $\mathrm{KL}(\pi\,\|\,\pi_{\text{ref}})$:
# $k_1 = -d$ (unbiased, large variance, may be negative), $k_2 = d^2/2$ (biased), $k_3 = e^d - 1 - d$ (unbiased and never negative). GRPO
# uses $k_3$.
#
# **KL 散度。** 三种估计量中，$k_3$ 无偏且非负，GRPO 采用它。

# %%
p, q = torch.tensor([0.7, 0.2, 0.1], dtype=torch.float64), torch.tensor([0.5, 0.3, 0.2], dtype=torch.float64)
truth = (p * (p / q).log()).sum()
drawn = torch.multinomial(p, 20_000, replacement=True, generator=torch.Generator().manual_seed(0))
d = (q.log() - p.log())[drawn]
k = {"k1": -d, "k2": d**2 / 2, "k3": d.exp() - 1 - d}
for name, values in k.items():
    print(
        f"{name}: mean {values.mean():.4f}, standard deviation {values.std():.4f}, smallest {values.min():+.3f}   (truth {truth:.4f})"
    )
assert k["k3"].min() >= 0 and abs(k["k3"].mean() - truth) < 0.005
assert k["k3"].std() < k["k1"].std()

# %% [markdown]
# ## 4.7 Thirty lines of GRPO
#
# Draw a group of answers for each prompt, ask the rule, normalise, take a few clipped steps, and pull towards the reference by $\beta\,k_3$. The
# loss is the mean over all tokens of the batch, as in DAPO. (GRPO's paper takes the mean over each answer first; our answers all have
# two tokens, so both are the same here.)
#
# **三十行实现 GRPO。** 采样、打分、组内标准化、若干截断步，并以 $\beta k_3$ 拉向参考策略；损失按全部 token 取平均（DAPO）。


# %%
def train(seed, steps, group=16, beta=0.01, lr=1e-3):
    """Trains a policy with GRPO. Returns (policy, reference, mean reward of each step, mean k3 of each step)."""
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    policy, reference = Policy(), Policy()
    reference.load_state_dict(policy.state_dict())
    optimizer = torch.optim.AdamW(policy.parameters(), lr=lr)
    history, divergence = [], []
    for _ in range(steps):
        ids = sample(policy, prompts(32, generator).repeat_interleave(group, 0), generator)
        scores = reward(ids)
        advantage = group_advantages(scores, group)[:, None]
        with torch.no_grad():
            old, ref = log_probabilities(policy, ids), log_probabilities(reference, ids)
        for _ in range(2):
            new = log_probabilities(policy, ids)
            k3 = (ref - new).exp() - 1 - (ref - new)
            loss = (clipped_loss(new, old, advantage) + beta * k3).mean()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
            optimizer.step()
        history.append(scores.mean().item())
        divergence.append(k3.mean().item())
    return policy, reference, history, divergence


STEPS = 120 if FAST else 400
runs = {seed: train(seed, STEPS) for seed in (0, 1, 2)}
for seed, (_, _, history, divergence) in runs.items():
    print(
        f"seed {seed}: reward {sum(history[:5]) / 5:.3f} -> {sum(history[-5:]) / 5:.3f}, k3 {divergence[-1]:.2f}"
    )

# %%
pyplot = plot()
for seed, (_, _, history, _) in runs.items():
    pyplot.plot(
        [sum(history[max(0, i - 9) : i + 1]) / min(i + 1, 10) for i in range(STEPS)], label=f"seed {seed}"
    )
pyplot.xlabel("step")
pyplot.ylabel("reward (mean of 10 steps)")
pyplot.legend()
pyplot.show()

# %% [markdown]
# What has it learned? Ask for every sum, and take the most probable answer.
#
# 它学到了什么？逐一询问所有加法，取最可能的答案。


# %%
@torch.no_grad()
def greedy(policy):
    a, b = torch.meshgrid(torch.arange(LARGEST), torch.arange(LARGEST), indexing="ij")
    ids = torch.stack(
        [a.flatten(), torch.full((LARGEST**2,), PLUS), b.flatten(), torch.full((LARGEST**2,), EQUALS)], 1
    )
    for _ in range(2):
        ids = torch.cat([ids, policy(ids)[:, -1:].argmax(-1)], 1)
    return ids


right = {seed: reward(greedy(run[0])).mean().item() for seed, run in runs.items()}
print("right answers:", {seed: f"{share:.0%}" for seed, share in right.items()})

# %% [markdown]
# ## 4.8 What the KL term does
#
# With a large $\beta$ the policy cannot leave its reference. **Predict:** what happens to the reward?
#
# **KL 项的作用。** $\beta$ 很大时策略无法离开参考策略。先猜：奖励会怎样？

# %%
_, _, held, near = train(0, STEPS // 2, beta=5.0)
_, _, free, far = train(0, STEPS // 2, beta=0.0)
print(
    f"beta 5: reward {sum(held[-5:]) / 5:.3f}, k3 {near[-1]:.3f};  beta 0: reward {sum(free[-5:]) / 5:.3f}, k3 {far[-1]:.3f}"
)
assert near[-1] < far[-1] / 3
assert sum(held[-5:]) < sum(free[-5:])

# %% [markdown]
# > **On Ascend.** These cells run with `torch.set_default_device("npu")`, also on the **simulated** NPU. They have not run on a card yet.
# >
# > **在昇腾上。** 加上 `torch.set_default_device("npu")` 即可，也可以在**模拟的** NPU 上运行。尚未在真实加速卡上运行过。

# %% [markdown]
# ## 4.9 Closing checks
#
# 结束检查

# %%
for seed, (_, _, history, _) in runs.items():
    assert sum(history[-10:]) / 10 > 3 * max(sum(history[:3]) / 3, 0.05), (
        f"the reward of seed {seed} did not rise"
    )
assert sorted(right.values())[1] >= 0.5  # of three seeds, the middle one
print("Chapter 4 is finished. 第 4 章完成。")
