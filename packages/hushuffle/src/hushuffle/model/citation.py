"""`Citation`: the source of a formula, a proof or a data set."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Citation:
    """A source: `key` is short and unique, and `where` names the theorem, section or page in it."""

    key: str
    text: str
    where: str = ""

    def at(self, where: str) -> Citation:
        """Return a citation of the same source at the theorem, section or page `where`."""
        return Citation(key=self.key, text=self.text, where=where)

    def __str__(self) -> str:
        return f"{self.text}{', ' + self.where if self.where else ''}"


WARNER = Citation(
    key="warner1965",
    text="S. L. Warner, Randomized response: a survey technique for eliminating evasive answer bias, JASA 60 (1965)",
)
KAIROUZ = Citation(
    key="kairouz2016",
    text="P. Kairouz, K. Bonawitz, D. Ramage, Discrete distribution estimation under local privacy, ICML (2016)",
)
BLANKET = Citation(
    key="balle2019",
    text="B. Balle, J. Bell, A. Gascon, K. Nissim, The privacy blanket of the shuffle model, CRYPTO (2019)",
)
DARROCH = Citation(
    key="darroch1964",
    text="J. N. Darroch, On the distribution of the number of successes in independent trials, "
    "Annals of Mathematical Statistics 35 (1964)",
)
QIF = Citation(
    key="jurado2023",
    text="M. Jurado, R. G. Gonze, M. S. Alvim, C. Palamidessi, Analyzing the shuffle model through the lens of "
    "quantitative information flow, CSF (2023)",
)
PIE = Citation(
    key="murakami2021",
    text="T. Murakami, K. Takahashi, Toward evaluating re-identification risks in the local privacy model, "
    "Transactions on Data Privacy 14 (2021)",
)
LADJEL = Citation(
    key="ladjel2021",
    text="R. Ladjel, N. Anciaux, A. Bellet, G. Scerri, Mitigating leakage from data dependent communications "
    "in decentralized computing using differential privacy (2021)",
)
FAIR = Citation(
    key="fair1978",
    text="R. C. Fair, A theory of extramarital affairs, Journal of Political Economy 86 (1978); "
    "Redbook survey of 1974 as bundled with statsmodels",
)
SHANNON = Citation(
    key="shannon1948",
    text="C. E. Shannon, A mathematical theory of communication, Bell System Technical Journal 27 (1948)",
)
BRAUN = Citation(
    key="braun2009",
    text="C. Braun, K. Chatzikokolakis, C. Palamidessi, Quantitative notions of leakage for one-try attacks, "
    "MFPS (2009)",
)
VERDU = Citation(key="verdu2015", text="S. Verdu, alpha-mutual information, Information Theory and Applications (2015)")
BLAHUT = Citation(
    key="blahut1972",
    text="R. E. Blahut, Computation of channel capacity and rate-distortion functions, IEEE Transactions on "
    "Information Theory 18 (1972)",
)
ARIMOTO = Citation(
    key="arimoto1972",
    text="S. Arimoto, An algorithm for computing the capacity of arbitrary discrete memoryless channels, IEEE "
    "Transactions on Information Theory 18 (1972)",
)
RAPPOR = Citation(
    key="erlingsson2014",
    text="U. Erlingsson, V. Pihur, A. Korolova, RAPPOR: randomized aggregatable privacy-preserving ordinal response, "
    "CCS (2014)",
)
HASHING = Citation(
    key="wang2017",
    text="T. Wang, J. Blocki, N. Li, S. Jha, Locally differentially private protocols for frequency estimation, "
    "USENIX Security (2017)",
)
ACHARYA = Citation(
    key="acharya2019",
    text="J. Acharya, Z. Sun, H. Zhang, Hadamard response: estimating distributions privately, efficiently, and with "
    "little communication, AISTATS (2019)",
)
YE_BARG = Citation(
    key="ye2018",
    text="M. Ye, A. Barg, Optimal schemes for discrete distribution estimation under locally differential privacy, "
    "IEEE Transactions on Information Theory 64 (2018)",
)
SQUARE_WAVE = Citation(
    key="li2020",
    text="Z. Li, T. Wang, M. Lopuhaa-Zwakenberg, B. Skoric, N. Li, Estimating numerical distributions under local "
    "differential privacy, SIGMOD (2020)",
)
GHOSH = Citation(
    key="ghosh2009",
    text="A. Ghosh, T. Roughgarden, M. Sundararajan, Universally utility-maximizing privacy mechanisms, STOC (2009)",
)
LUO = Citation(
    key="luo2022",
    text="Q. Luo, Y. Wang, K. Yi, Frequency estimation in the shuffle model with almost a single message, CCS (2022)",
)
MURAKAMI = Citation(
    key="murakami2025",
    text="T. Murakami, Y. Sei, R. Eriguchi, Augmented shuffle protocols for accurate and robust frequency estimation "
    "under differential privacy, IEEE S&P (2025)",
)
MEEHAN = Citation(
    key="meehan2022",
    text="C. Meehan, A. Roy Chowdhury, K. Chaudhuri, S. Jha, Privacy implications of shuffling, ICLR (2022)",
)
