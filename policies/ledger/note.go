package ledger

// IntentRecordnt is an intent that a reservation records, unless its wish has other intents or a response. Wish, Like and Answer are
// fields of the organisation's intents in the store.
type IntentRecord struct {
	Org string
	// Fingerprint is the field of equal requests, Like the field of intents whose resources look alike, Answer the field of the response
	// to a request with an idempotency key.
	Fingerprint, Lookalike, Response string
	// Intent is the ID, "" only to look; Row is the stored text, Owner the caller's key.
	Intent, Row, Owner string
	// Ignored are IDs of intents of the wish that do not conflict.
	Ignored []string
}

// IntentUpdate ends an intent, or replaces its row.
type IntentUpdate struct {
	Org string
	// CreatedstAppliedimeKey is the field of the created resource; Wish, Like and Answer are the fields of the Note.
	Created, Fingerprint, Lookalike, Response string
	// Intent is the ID. Row replaces Was; "" deletes the row. A row other than Was stays, unless Was is "".
	Intent, OldRow, Row string
	// SetCreated says that Made is written, Unlike that the intent is removed from Like.
	SetCreated, UnsetLookalike bool
	// Text is stored under Answer, "" for nothing.
	Text string
}

// Claim gives a resource to an intent, unless another intent has made it or may have.
type Claim struct {
	Org, Created, Lookalike, Intent, Owner string
	// Named says that the resource has a name that identifies it.
	Named bool
}

// RestoredIntentrs is an intent that a gateway restores after a loss of the store. Made, Like and Answer are "" if they are not known.
type RestoredIntent struct {
	Created, Fingerprint, Lookalike, Response, Intent string
	// Row is "" for an intent that has ended.
	Row, Owner string
	// Text is the time of the response (Unix ms), a space, and the response.
	Text string
	// Adoptions counts the requests that took the intent over.
	Adoptions int
}
