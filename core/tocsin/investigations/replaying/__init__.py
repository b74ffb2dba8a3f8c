"""Running an investigation again from its ledger: nobody is asked, and it must come to the same."""
