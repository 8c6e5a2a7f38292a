package spend

// Note is an intent that a reservation records, unless its wish has other intents or a response. Wish, Like and Answer are
// fields of the organisation's intents in the store.
type Note struct {
	Org string
	// Wish is the field of equal requests, Like the field of intents whose resources look alike, Answer the field of the response
	// to a request with an idempotency key.
	Wish, Like, Answer string
	// Intent is the ID, "" only to look; Row is the stored text, Owner the caller's key.
	Intent, Row, Owner string
	// Past are IDs of intents of the wish that do not conflict.
	Past []string
}

// Ending ends an intent, or replaces its row.
type Ending struct {
	Org string
	// Made is the field of the created resource; Wish, Like and Answer are the fields of the Note.
	Made, Wish, Like, Answer string
	// Intent is the ID. Row replaces Was; "" deletes the row. A row other than Was stays, unless Was is "".
	Intent, Was, Row string
	// Known says that Made is written, Unlike that the intent is removed from Like.
	Known, Unlike bool
	// Text is stored under Answer, "" for nothing.
	Text string
}

// Claim gives a resource to an intent, unless another intent has made it or may have.
type Claim struct {
	Org, Made, Like, Intent, Owner string
	// Named says that the resource has a name that identifies it.
	Named bool
}

// Remembered is an intent that a gateway restores after a loss of the store. Made, Like and Answer are "" if they are not known.
type Remembered struct {
	Made, Wish, Like, Answer, Intent string
	// Row is "" for an intent that has ended.
	Row, Owner string
	// Text is the time of the response (Unix ms), a space, and the response.
	Text string
	// Taken counts the requests that took the intent over.
	Taken int
}
