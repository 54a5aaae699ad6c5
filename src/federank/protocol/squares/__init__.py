"""Few messages: the maths of the four steps where a device solves for its own vector and sends one dense message.

FCF (Ammad-ud-din et al., 2019) and Frugal live here. Calls models, the policy, the draws; no other family.
"""
