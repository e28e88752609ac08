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
# divergence, each checked by hand; the course's model has learned to add from a rule that says right or wrong, and your loss is the one of trl's
# `GRPOTrainer` and of MindSpeed-RL. It takes about 60 minutes. You need chapter 1, and to know what a language model's loss is.
#
# **第 4 章 强化学习：从策略梯度到 GRPO。** 学完本章，你会推导并亲手验证策略梯度、PPO 的截断比率、GAE、GRPO 的优势函数以及 KL 散度的
# 几种估计；本课程的模型将仅凭“对或错”的规则奖励改正加法，你写的损失与 trl 的 `GRPOTrainer` 以及 MindSpeed-RL 一致。约需 60 分钟。

# %% [markdown]
# ## 4.1 A result first
#
# The pretrained model shall add: the prompt is `7+8=`, and the answer `15` and the end token. First it learns from a *poor teacher*, who forgets to
# carry seven times in ten. Then no answer is shown to it any more: it draws answers itself, and a *rule* gives 1 to a right one and 0 to
# a wrong one. That is GRPO. All its code is in one cell; the next sections derive each part. **Predict:** can a pupil become better than
# the teacher?
#
# **先看结果。** 预训练模型要学加法：提示为 `7+8=`，答案为 `15` 加结束符。先向一位“糟糕的老师”学习（十次有七次忘记进位）；之后不再展示答案，
# 模型自己采样，规则只说对（1）或错（0），这就是 GRPO。全部代码在一个单元里，后面各节逐一推导。先猜：学生能否超过老师？

# %%
import copy
import math
import random

import msadapter

msadapter.install()

import torch
from lesson import FAST, base, check, plot, stored, work
from model import END, FILL, Llama, hugging_face, ids_of, text_of, tokenizer, write
from torch import nn
from torch.nn import functional as F

LENGTH, ANSWER = 4, 3  # ids of a prompt, and the most of an answer: two digits and the end
ALL = torch.tensor([ids_of(f"{a}+{b}=") for a in range(10) for b in range(10)])


def reward(ids):
    """1.0 where the answer behind the prompt is the sum and ends there, else 0.0. The rule is all that the policy learns from."""
    found = []
    for row in ids.tolist():
        a, b = row[0] - ord("0"), row[2] - ord("0")
        found.append(float(row[LENGTH : LENGTH + len(str(a + b)) + 1] == [*ids_of(str(a + b)), END]))
    return torch.tensor(found)


@torch.no_grad()
def sample(policy, ids, generator):
    """The ids with an answer, drawn from the policy. What stands behind the end is filling."""
    ended = torch.zeros(len(ids), dtype=torch.bool)
    for _ in range(ANSWER):
        chances = policy(ids)[:, -1].softmax(-1)
        drawn = torch.multinomial(chances, 1, generator=generator)[:, 0]
        drawn = torch.where(ended, torch.full_like(drawn, FILL), drawn)
        ids, ended = torch.cat([ids, drawn[:, None]], 1), ended | (drawn == END)
    return ids


def log_probabilities(policy, ids):
    """The log-probability of each token of the answer, of shape (samples, ANSWER)."""
    scores = policy(ids[:, :-1])[:, LENGTH - 1 :].log_softmax(-1)
    return scores.gather(-1, ids[:, LENGTH:, None]).squeeze(-1)


def clipped_loss(new, old, advantage, epsilon=0.2):
    """PPO's loss for each token, from log-probabilities of the same shape as the advantage."""
    ratio = (new - old).exp()
    return -torch.minimum(ratio * advantage, ratio.clamp(1 - epsilon, 1 + epsilon) * advantage)


def group_advantages(rewards, group):
    """Rewards, group after group, normalised within each group with the unbiased standard deviation."""
    grouped = rewards.view(-1, group)
    return ((grouped - grouped.mean(1, keepdim=True)) / (grouped.std(1, keepdim=True) + 1e-4)).flatten()


def grpo_loss(new, old, ref, advantage, mask, beta):
    """The mean over all tokens of the batch, as in DAPO. mask is 1 where a token belongs to an answer."""
    k3 = (ref - new).exp() - 1 - (ref - new)
    return ((clipped_loss(new, old, advantage[:, None]) + beta * k3) * mask).sum() / mask.sum()


def grpo(start, seed, steps, group=16, beta=0.01, lr=5e-4):
    """Trains a copy of a model. Returns (policy, mean reward of each step, KL divergence from the start in each step)."""
    generator = torch.Generator().manual_seed(seed)
    policy, reference = copy.deepcopy(start), start
    optimizer = torch.optim.AdamW(policy.parameters(), lr=lr, weight_decay=0.0)
    history, divergence = [], []
    for _ in range(steps):
        asked = ALL[torch.randint(len(ALL), (16,), generator=generator)]
        ids = sample(policy, asked.repeat_interleave(group, 0), generator)
        mask, rewards = (ids[:, LENGTH:] != FILL).float(), reward(ids)
        advantage = group_advantages(rewards, group)
        with torch.no_grad():
            old, ref = log_probabilities(policy, ids), log_probabilities(reference, ids)
        for _ in range(2):
            new = log_probabilities(policy, ids)
            loss = grpo_loss(new, old, ref, advantage, mask, beta)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
            optimizer.step()
        d = ref - new.detach()
        history.append(rewards.mean().item())
        divergence.append((((d.exp() - 1 - d) * mask).sum() / mask.sum()).item())
    return policy, history, divergence


def learn_from_teacher(steps, lr=2e-3):
    """The pretrained model, after it has learned sums from a teacher who forgets seven of ten carries."""
    teacher, policy = random.Random(0), Llama()
    policy.load_state_dict(base())
    optimizer = torch.optim.AdamW(policy.parameters(), lr=lr, weight_decay=0.0)
    for _ in range(steps):
        rows = []
        for _ in range(64):
            a, b = teacher.randrange(10), teacher.randrange(10)
            told = a + b - (10 if a + b >= 10 and teacher.random() < 0.7 else 0)
            rows.append([*ids_of(f"{a}+{b}={told}"), END, FILL][: LENGTH + ANSWER])
        ids = torch.tensor(rows)
        new, mask = log_probabilities(policy, ids), ids[:, LENGTH:] != FILL
        optimizer.zero_grad()
        (-(new * mask).sum() / mask.sum()).backward()
        nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
        optimizer.step()
    return policy


@torch.no_grad()
def greedy(policy):
    """The share of all hundred sums whose most probable answer is right."""
    ids = ALL
    for _ in range(ANSWER):
        ids = torch.cat([ids, policy(ids)[:, -1:].argmax(-1)], 1)
    return reward(ids).mean().item()


right_and_wrong = torch.tensor([[*ids_of("1+2=3"), END, FILL], [*ids_of("1+2="), *ids_of("31"), END]])
assert reward(right_and_wrong).tolist() == [1.0, 0.0]
STEPS = 60 if FAST else 150
start = learn_from_teacher(300 if FAST else 500)
policy, history, divergence = grpo(start, 0, STEPS)
for question in ("3+4=", "6+5=", "7+8=", "9+9="):
    print(
        f"{question} taught {write(start, question, ANSWER):3} after GRPO {write(policy, question, ANSWER)}"
    )
print(f"right answers: {greedy(start):.0%} -> {greedy(policy):.0%}")
assert greedy(start) < 0.75 and greedy(policy) > greedy(start) + 0.15

# %% [markdown]
# ## 4.2 The policy gradient
#
# We want to raise $J(\theta) = \mathbb{E}_{y\sim\pi_\theta}[R(y)] = \sum_y \pi_\theta(y)\,R(y)$. The sum over all answers cannot be computed, but
# its gradient can be estimated, in three steps:
#
# 1. The rewards do not depend on $\theta$, so $\nabla J = \sum_y \nabla\pi_\theta(y)\,R(y)$.
# 2. The chain rule for the logarithm gives $\nabla\log\pi = \nabla\pi/\pi$, so $\nabla\pi = \pi\,\nabla\log\pi$.
# 3. Put in, the sum is an expectation again: $\nabla J = \mathbb{E}_{y\sim\pi_\theta}\bigl[R(y)\,\nabla\log\pi_\theta(y)\bigr]$.
#
# So sample answers, and raise the log-probability of each by its reward. Let us check this where the expectation can be computed in full:
# three actions with scores $s$.
#
# **策略梯度。** 目标是提高 $J(\theta)=\sum_y\pi_\theta(y)R(y)$。（1）奖励与 $\theta$ 无关，梯度只作用于 $\pi$；（2）由对数的链式法则，
# $\nabla\pi=\pi\nabla\log\pi$；（3）代入后和式又成为期望。于是：采样答案，按奖励提高其对数概率。先在可以精确求期望的情形（三个动作）下验证。

# %%
scores = torch.tensor([0.5, -1.0, 0.2], dtype=torch.float64, requires_grad=True)
rewards = torch.tensor([1.0, 0.0, 3.0], dtype=torch.float64)
(exact,) = torch.autograd.grad((scores.softmax(0) * rewards).sum(), scores)

chances = scores.softmax(0).detach()
ups = torch.stack([torch.autograd.grad(scores.log_softmax(0)[action], scores)[0] for action in range(3)])
by_hand = (chances[:, None] * rewards[:, None] * ups).sum(0)
print("exact", exact.tolist(), "by hand", by_hand.tolist())
assert torch.allclose(exact, by_hand, atol=1e-12)

# %% [markdown]
# **Predict before you run:** if 10 is added to every reward, does the gradient change? And the variance of its estimate from samples?
#
# A constant $b$ adds $b\,\mathbb{E}[\nabla\log\pi]$, and $\mathbb{E}[\nabla\log\pi] = \sum_y \pi\,\nabla\log\pi = \sum_y\nabla\pi = \nabla\sum_y\pi = \nabla 1 = 0$.
# So every constant may be subtracted from the rewards: a *baseline*. What remains of a reward is the *advantage*.
#
# **先猜再运行：** 若所有奖励都加 10，梯度会变吗？由样本估计的方差呢？常数 $b$ 只增加 $b\,\mathbb{E}[\nabla\log\pi]$，而
# $\mathbb{E}[\nabla\log\pi]=\sum\nabla\pi=\nabla 1=0$。因此可以减去任意**基线**；剩下的部分称为**优势**。

# %%
expected_up = (chances[:, None] * ups).sum(0)
print("the mean of the gradient of log pi:", [f"{v:.0e}" for v in expected_up.tolist()])
assert torch.allclose(expected_up, torch.zeros(3, dtype=torch.float64), atol=1e-12)


def estimates(baseline, count=4000):
    """Gradients that single samples give for the rewards plus 10 minus the baseline."""
    actions = torch.multinomial(chances, count, replacement=True, generator=torch.Generator().manual_seed(1))
    return ups[actions] * (rewards + 10 - baseline)[actions][:, None]


mean = (chances * (rewards + 10)).sum()
for name, baseline in (("without a baseline", 0.0), ("with the mean reward as baseline", mean)):
    drawn = estimates(baseline)
    print(f"{name}: mean {[round(v, 2) for v in drawn.mean(0).tolist()]}, variance {drawn.var(0).sum():.2f}")
assert estimates(mean).var(0).sum() < estimates(0.0).var(0).sum() / 5
assert torch.allclose(estimates(mean).mean(0), exact, atol=0.1)

# %% [markdown]
# ## 4.3 PPO: several steps with the same samples
#
# Samples are expensive, so they are used for several steps. The policy then differs from $\pi_{\text{old}}$, which drew them. The expectation
# under the new policy is still within reach, if each sample is weighted:
# $$\mathbb{E}_{y\sim\pi_\theta}[A] = \sum_y \pi_\theta A = \sum_y \pi_{\text{old}}\,\frac{\pi_\theta}{\pi_{\text{old}}}\,A =
# \mathbb{E}_{y\sim\pi_{\text{old}}}[\rho\,A], \qquad \rho = \frac{\pi_\theta}{\pi_{\text{old}}}.$$
# Its gradient is $\mathbb{E}_{\text{old}}[\rho\,A\,\nabla\log\pi_\theta]$, because $\nabla\rho = \rho\,\nabla\log\pi_\theta$. In the first step $\rho = 1$,
# and it is the policy gradient.
#
# **PPO：同一批样本用多步。** 用比率 $\rho$ 加权，旧策略的样本也能给出新策略的期望。由 $\nabla\rho=\rho\nabla\log\pi_\theta$，
# 第一步（$\rho=1$）就是策略梯度。

# %%
moved = (scores + torch.tensor([0.3, 0.1, -0.2])).detach().requires_grad_()
weighted = (chances * (moved.softmax(0) / chances) * rewards).sum()  # the mean over the old policy
assert torch.isclose(weighted, (moved.softmax(0) * rewards).sum(), atol=1e-12)
(at_old,) = torch.autograd.grad((chances * (scores.softmax(0) / chances) * rewards).sum(), scores)
(away,) = torch.autograd.grad(weighted, moved)
print("gradient with ratio 1 ", at_old.tolist())
print("the policy gradient   ", exact.tolist())
assert torch.allclose(at_old, exact, atol=1e-12) and not torch.allclose(away, exact, atol=1e-3)

# %% [markdown]
# Far from the old policy, few samples get huge weights, and the estimate is noise. PPO keeps $\rho$ near 1:
# $$L = -\min\bigl(\rho A,\ \operatorname{clip}(\rho, 1-\epsilon, 1+\epsilon)\,A\bigr).$$
#
# 离旧策略太远时，少数样本权重极大，估计就成了噪声。PPO 把 $\rho$ 截断在 1 附近。

# %%
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
# $$A_t = \sum_{l\ge0} (\gamma\lambda)^l\,\delta_{t+l} = \delta_t + \gamma\lambda\,A_{t+1}.$$
# With $\lambda = 0$ only $\delta_t$ is left: little noise, but as wrong as $V$. With $\lambda = \gamma = 1$ the values between cancel, because each
# $+V(s_{t+1})$ meets the next $-V(s_{t+1})$: what is left is $\sum r - V(s_t)$, the return minus the baseline.
#
# **GAE：** 用价值网络的误差 $\delta_t$ 的折扣和作为优势。$\lambda=0$ 只剩 $\delta_t$（噪声小，但 $V$ 错它也错）；
# $\lambda=\gamma=1$ 时中间的价值逐项抵消，只剩回报减去 $V(s_t)$。


# %%
def gae(rewards, values, gamma=0.99, lam=0.95):
    """Advantages of episodes, of shape (..., steps). values has one number more: that of the state after the last step."""
    advantages, following = [], torch.zeros_like(rewards[..., 0])
    for t in reversed(range(rewards.shape[-1])):
        delta = rewards[..., t] + gamma * values[..., t + 1] - values[..., t]
        following = delta + gamma * lam * following
        advantages.insert(0, following)
    return torch.stack(advantages, -1)


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
# And now PPO as a whole: the same task, the same start, a value for every token from the model's hidden states, and GAE. The reward comes with the
# last token of an answer. **Predict:** what does it need that GRPO does not?
#
# 现在完整地训练 PPO：同样的任务和起点，用隐藏状态为每个 token 预测价值，再用 GAE 求优势；奖励在答案的最后一个 token 给出。先猜：它比 GRPO 多需要什么？


# %%
def ppo(start, seed, steps, lr=5e-4):
    """Trains a copy of a model with a value head. Returns (policy, mean reward of each step)."""
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    policy, value = copy.deepcopy(start), nn.Linear(start.shape.hidden, 1)
    optimizer = torch.optim.AdamW([*policy.parameters(), *value.parameters()], lr=lr, weight_decay=0.0)
    history = []
    for _ in range(steps):
        ids = sample(policy, ALL[torch.randint(len(ALL), (256,), generator=generator)], generator)
        mask, rewards = (ids[:, LENGTH:] != FILL).float(), reward(ids)
        last = F.one_hot(mask.sum(1).long() - 1, ANSWER)  # where the answer ends
        with torch.no_grad():
            old = log_probabilities(policy, ids)
            values = value(policy.model(ids[:, :-1])[:, LENGTH - 1 :]).squeeze(-1) * mask
            values = F.pad(values, (0, 1))  # nothing comes after the answer
            advantage = gae(last * rewards[:, None], values, gamma=1.0) * mask
            returns = advantage + values[:, :-1]
            centred = (advantage - advantage[mask == 1].mean()) / advantage[mask == 1].std()
        for _ in range(2):
            hidden = policy.model(ids[:, :-1])[:, LENGTH - 1 :]
            new = policy.lm_head(hidden).log_softmax(-1).gather(-1, ids[:, LENGTH:, None]).squeeze(-1)
            error = (value(hidden).squeeze(-1) - returns).square()
            loss = ((clipped_loss(new, old, centred) + 0.5 * error) * mask).sum() / mask.sum()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
            optimizer.step()
        history.append(rewards.mean().item())
    return policy, history


with_values, ppo_history = ppo(start, 0, STEPS)
print(f"PPO with GAE: reward {sum(ppo_history[:5]) / 5:.2f} -> {sum(ppo_history[-5:]) / 5:.2f},", end=" ")
print(f"right answers {greedy(start):.0%} -> {greedy(with_values):.0%}")
assert sum(ppo_history[-5:]) > sum(ppo_history[:5]) + 0.5

# %% [markdown]
# ## 4.5 GRPO: the group is the baseline
#
# GRPO needs no value network. It draws $G$ answers to the same prompt, and the advantage of each is its reward, normalised in the group:
# $$A_i = \frac{R_i - \operatorname{mean}(R)}{\operatorname{std}(R) + \epsilon}.$$
# The group's mean is a baseline for its prompt: an easy sum has a high one, a hard sum a low one.
#
# **GRPO：以组为基线。** 对同一提示采样 $G$ 个答案，用组内标准化后的奖励作为优势，不需要价值网络。简单的题基线高，难题基线低。

# %%
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
# From samples of $\pi$, with $d = \log\pi_{\text{ref}} - \log\pi$, there are three estimators of $\mathrm{KL}(\pi\,\|\,\pi_{\text{ref}}) = \mathbb{E}[-d]$:
# $k_1 = -d$ (unbiased, large variance, may be negative), $k_2 = d^2/2$ (biased), $k_3 = e^d - 1 - d$. GRPO uses $k_3$. It is unbiased, because
# $\mathbb{E}[e^d] = \sum \pi\,\pi_{\text{ref}}/\pi = 1$, and never negative, because $e^d \ge 1 + d$.
#
# **KL 散度。** 三种估计量中，$k_3$ 无偏（因为 $\mathbb{E}[e^d]=1$）且非负（因为 $e^d\ge1+d$），GRPO 采用它。

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
# ## 4.7 The same with trl
#
# trl's `GRPOTrainer` is the usual library. We give it the taught model and our rule, let it draw one batch, and compare the advantages. Then we
# give it a batch of ours and compare the loss: with a policy that has moved on, so that ratios are cut and the KL divergence is not zero.
#
# **与 trl 核对。** 把学过加法的模型和规则交给 trl 的 `GRPOTrainer`：先让它采样一批并比较优势；再给它我们的一批数据比较损失（策略已经移动，
# 比率会被截断，KL 不为零）。

# %%
import warnings

warnings.filterwarnings("ignore")  # trl and transformers announce their own future changes
import datasets
import transformers
import trl

transformers.utils.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()
seen = []


def rule(prompts, completions, **_):
    """The reward of trl: a list of texts in, a list of numbers out."""
    found = []
    for prompt, text in zip(prompts, completions, strict=True):
        a, b = prompt.rstrip("=").split("+")
        found.append(float(text == str(int(a) + int(b))))
    seen.append(found)
    return found


library = hugging_face()
library.load_state_dict(start.state_dict())
library.save_pretrained(work(4) / "taught")  # trl loads its reference from there
trainer = trl.GRPOTrainer(
    model=transformers.AutoModelForCausalLM.from_pretrained(work(4) / "taught", dtype="float32"),
    reward_funcs=rule,
    args=trl.GRPOConfig(
        output_dir=str(work(4) / "trl"),
        max_steps=1,
        per_device_train_batch_size=16,
        num_generations=8,
        max_completion_length=ANSWER,
        temperature=1.0,
        beta=0.1,
        loss_type="dapo",
        use_bias_correction_kl=False,  # the formula of GRPO's paper
        learning_rate=1e-3,
        report_to="none",
        save_strategy="no",
        logging_strategy="no",
        disable_tqdm=True,
        use_cpu=True,
        bf16=False,
        seed=3,
    ),
    train_dataset=datasets.Dataset.from_list([{"prompt": text_of(row)} for row in ALL.tolist()]),
    processing_class=tokenizer(),
)
trainer.remove_callback(transformers.PrinterCallback)
trainer.train()
theirs = torch.tensor(list(trainer._logs["advantages"]))
ours = group_advantages(torch.tensor(seen[0]), 8)
print("rewards that trl's samples got:", seen[0])
print(f"largest difference of the advantages {(theirs - ours).abs().max():.1e}")
assert theirs.abs().max() > 0 and torch.allclose(theirs, ours, atol=1e-5)

# %%
generator = torch.Generator().manual_seed(4)
ids = sample(start, ALL[::7].repeat_interleave(8, 0), generator)
mask, advantage = (ids[:, LENGTH:] != FILL).float(), group_advantages(reward(ids), 8)
trainer.model.load_state_dict(policy.state_dict())  # the one that GRPO has trained
with torch.no_grad():
    old, new = log_probabilities(start, ids), log_probabilities(policy, ids)
    far = (new - old).exp()[mask == 1]
    ours = grpo_loss(new, old, old, advantage, mask, 0.1)
    batch = {
        "prompt_ids": ids[:, :LENGTH],
        "prompt_mask": torch.ones_like(ids[:, :LENGTH]),
        "completion_ids": ids[:, LENGTH:],
        "completion_mask": mask.long(),
        "advantages": advantage,
        "old_per_token_logps": old,
        "ref_per_token_logps": old,
        "num_items_in_batch": mask.sum(),
    }
    trainer.current_gradient_accumulation_steps = 1
    theirs = trainer._compute_loss(trainer.model.train(), batch)
print(f"ratios from {far.min():.2f} to {far.max():.2f}; loss: ours {ours:.6f}, trl's {theirs:.6f}")
assert far.max() > 1.2 and far.min() < 0.8 and abs(ours - theirs) < 1e-4 * max(1, abs(ours))

# %% [markdown]
# ## 4.8 Three seeds, and what the KL term does
#
# One lucky run proves little. Two more seeds, and PPO's curve beside them. (GRPO's paper takes the mean of the loss over each answer first; our
# mean over all tokens of the batch is DAPO's, in which a long answer counts for more.)
#
# **三个随机种子与 KL 项。** 一次成功说明不了什么：再训练两个种子，并与 PPO 的曲线放在一起。（GRPO 论文先对每个答案求平均；这里对全部 token 求平均，即 DAPO。）

# %%
runs = {0: (policy, history, divergence)} | {seed: grpo(start, seed, STEPS) for seed in (1, 2)}
right = {seed: greedy(run[0]) for seed, run in runs.items()}
for seed, (_, rewards, far) in runs.items():
    print(
        f"seed {seed}: reward {sum(rewards[:5]) / 5:.2f} -> {sum(rewards[-5:]) / 5:.2f}, right {right[seed]:.0%}, k3 {far[-1]:.2f}"
    )

# %%
pyplot = plot()
curves = {f"GRPO, seed {seed}": rewards for seed, (_, rewards, _) in runs.items()}
for name, rewards in (curves | {"PPO with GAE": ppo_history}).items():
    smooth = [sum(rewards[max(0, i - 9) : i + 1]) / min(i + 1, 10) for i in range(STEPS)]
    pyplot.plot(smooth, "--" if "PPO" in name else "-", label=name)
pyplot.xlabel("step")
pyplot.ylabel("reward (mean of 10 steps)")
pyplot.legend()
pyplot.show()

# %% [markdown]
# With a large $\beta$ the policy cannot leave its reference, which is the taught model with its wrong carries. **Predict:** what happens to the reward?
#
# $\beta$ 很大时，策略无法离开参考策略（即学会了错误进位的模型）。先猜：奖励会怎样？

# %%
_, held, near = grpo(start, 0, STEPS // 2, beta=2.0)
_, free, far = grpo(start, 0, STEPS // 2, beta=0.0)


def last(values):
    """The mean of the last ten steps."""
    return sum(values[-10:]) / 10


print(
    f"beta 2: reward {last(held):.3f}, k3 {last(near):.3f};  beta 0: reward {last(free):.3f}, k3 {last(far):.3f}"
)
assert last(near) < last(far) / 2 and last(held) < last(free) - 0.05

# %% [markdown]
# ## 4.9 The same with MindSpeed-RL, on several processes
#
# On Ascend, large models are trained by MindSpeed-RL. Its mathematics is what you have written. What it adds is transport, because training and
# sampling want the model in different layouts:
#
# | in 4.1 | in MindSpeed-RL |
# |---|---|
# | `policy` | a worker of Ray on each rank, which holds a part of the model (Megatron; here tensor parallelism 2) |
# | `sample` | an engine, here with the whole model on each rank. The weights are moved to it before each sampling: *resharding* |
# | `log_probabilities(reference, ids)` | a forward pass of the worker with the first weights |
# | `reward` | a worker of its own with a rule; here `math_17k_acc`, which reads the number in `\boxed{}` |
# | `ids`, `old`, `ref`, `advantage` | a *transfer dock*, from which each worker fetches what it has not seen |
#
# This notebook does not run it, because it needs Ray and the converted sources. `bash auto_convert.sh rl --train` runs it on two processes of
# this machine: `train_grpo.py`, unmodified, teaches sums of two numbers of two digits to a model whose teacher forgot carries, too. On a CPU a
# class over transformers' `generate` answers for its engine, vLLM. `answers/mindspeed_rl.json` has what it printed, and what its functions say to
# random numbers. **Predict:** it adds $10^{-6}$ to the standard deviation, and we add $10^{-4}$. By how much can advantages of
# rewards 0 and 1 differ?
#
# **用 MindSpeed-RL 在多个进程上做同样的事。** 昇腾上的大模型由 MindSpeed-RL 训练。数学就是你写的这些；它多出来的是“搬运”，因为训练与采样需要不同的模型布局：
#
# | 4.1 节 | MindSpeed-RL |
# |---|---|
# | `policy` | 每个进程上的 Ray worker，持有模型的一部分（Megatron，此处张量并行 2） |
# | `sample` | 推理引擎，此处每个进程一份完整模型；每次采样前把权重搬过去：**重分片** |
# | `log_probabilities(reference, ids)` | worker 用初始权重做一次前向 |
# | `reward` | 单独的规则 worker；此处为 `math_17k_acc`，读取 `\boxed{}` 中的数 |
# | `ids`、`old`、`ref`、`advantage` | **transfer dock**，各 worker 从中取走自己尚未处理的样本 |
#
# 它需要 Ray 和转换后的源码，因此不在本笔记中运行：`bash auto_convert.sh rl --train` 会在本机两个进程上运行未经修改的 `train_grpo.py`，
# 教一个同样“忘记进位”的模型做两位数加法（CPU 上由基于 transformers `generate` 的类代替 vLLM）。`answers/mindspeed_rl.json` 记录了它的输出，
# 以及它的函数对随机数给出的结果。先猜：它给标准差加 $10^{-6}$，我们加 $10^{-4}$；奖励为 0 和 1 时，优势最多相差多少？

# %%
import json

from lesson import HERE

told = json.loads((HERE / "answers/mindspeed_rl.json").read_text())
print(told["origin"])
theirs = {name: torch.tensor(values) for name, values in told["example"].items()}
ours = group_advantages(theirs["rewards"], told["group"])
print(f"largest difference of the advantages {(ours - theirs['advantages']).abs().max():.1e}")
assert 1e-5 < (ours - theirs["advantages"]).abs().max() < 1e-3
words = (theirs[name] for name in ("new", "old", "reference", "advantages", "mask"))
loss = grpo_loss(*words, told["beta"])
print(f"loss: ours {loss:.6f}, MindSpeed-RL's {theirs['loss']:.6f}")
assert abs(loss - theirs["loss"]) < 1e-6

# %%
trained = told["training"]
smooth = [
    sum(trained["rewards"][max(0, i - 9) : i + 1]) / min(i + 1, 10) for i in range(len(trained["rewards"]))
]
pyplot.plot(smooth)
pyplot.xlabel("iteration of MindSpeed-RL")
pyplot.ylabel("reward (mean of 10 iterations)")
pyplot.show()
print(f"right answers to sums that no training has seen: {trained['before']:.1%} -> {trained['after']:.1%}")
assert trained["after"] > trained["before"] + 0.1

# %% [markdown]
# > **On Ascend.** These cells run with `torch.set_default_device("npu")`, also on the **simulated** NPU. They have not run on a card yet, and
# > neither has MindSpeed-RL. For large models there are `python -m megatron_ms grpo run.yaml` (with trl) and MindSpeed-RL.
# >
# > **在昇腾上。** 加上 `torch.set_default_device("npu")` 即可，也可以在**模拟的** NPU 上运行。尚未在真实加速卡上运行过，MindSpeed-RL 也是如此。
# > 大模型可用 `python -m megatron_ms grpo run.yaml`（基于 trl）或 MindSpeed-RL。

# %% [markdown]
# ## 4.10 Closing checks
#
# 结束检查

# %%
for seed, (_, rewards, _) in runs.items():
    assert sum(rewards[-10:]) / 10 > sum(rewards[:3]) / 3 + 0.1, f"the reward of seed {seed} did not rise"
    assert right[seed] > greedy(start) + 0.1, f"seed {seed} has not learned to carry"
print("Chapter 4 is finished. 第 4 章完成。")

# %% [markdown]
# Read on: [reinforcement learning from rules](../docs/toolkit.md#reinforcement-learning-from-rules), [MindSpeed-RL](../docs/reinforcement_learning.md).
# Next chapter: [memory and performance](5_memory_and_performance.ipynb).
