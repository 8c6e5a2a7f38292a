package ledger

// IntentRecord is the record of a pending request (an intent). It is written together with the request's reservation, but only if no other
// intent and no response exists for the same fingerprint. Fingerprint, Lookalike and Response are field names in the organisation's intents
// hash.
type IntentRecord struct {
	Org string
	// Fingerprint is the field of equal requests, Lookalike the field of intents whose resources look alike, and Response the field of the
	// response to a request with an idempotency key.
	Fingerprint, Lookalike, Response string
	// Intent is the intent's ID; "" only checks for other intents. Row is the stored text, and Owner the caller's key.
	Intent, Row, Owner string
	// Ignored are the IDs of intents with the same fingerprint that do not conflict.
	Ignored []string
}

// IntentUpdate ends an intent or replaces its row.
type IntentUpdate struct {
	Org string
	// Created is the field of the created resource. Fingerprint, Lookalike and Response are the fields of the IntentRecord.
	Created, Fingerprint, Lookalike, Response string
	// Intent is the ID of the intent. Row replaces OldRow; an empty Row deletes the row. If the stored row differs from OldRow, it is left
	// unchanged, unless OldRow is "".
	Intent, OldRow, Row string
	// SetCreated writes the field Created, and UnsetLookalike removes the intent from Lookalike.
	SetCreated, UnsetLookalike bool
	// Text is stored in the field Response; "" stores nothing.
	Text string
}

// Claim assigns a resource to an intent. The assignment fails if another intent has created the resource or may have created it. Created
// and Lookalike are field names in the organisation's intents hash (see [IntentUpdate]), Intent is the ID of the intent, and Owner is the
// caller's key.
type Claim struct {
	Org, Created, Lookalike, Intent, Owner string
	// Named is set if the resource has a name that identifies it.
	Named bool
}

// RestoredIntent is an intent that a gateway restores after a loss of data. Created, Lookalike and Response are "" if unknown.
type RestoredIntent struct {
	Created, Fingerprint, Lookalike, Response, Intent string
	// Row is "" for an intent that has ended.
	Row, Owner string
	// Text is the time of the response (Unix ms), a space, and the response.
	Text string
	// Adoptions counts the requests that have adopted the intent.
	Adoptions int
}
