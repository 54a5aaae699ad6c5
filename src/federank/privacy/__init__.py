"""What users control: policies, the ledger of what was sent, the accountant."""
