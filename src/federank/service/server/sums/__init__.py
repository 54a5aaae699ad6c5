"""The leader's side of sums: uploads that it cannot read, added up with a helper's word for each.

    agreeing      the charter of sums, made with the helper when a federation is established
    helper_line   what the leader asks of the helper over HTTP
    store         offers, sums and reports in the store
    rounds        a round from its offer to its fold
    plausible     sums that no cohort of honest devices can have made
    endpoints     what anybody may fetch: charter, offers, records, sums

It calls the protocol of sums and the server's store; the rest of the server calls it through rounds and endpoints.
"""
