package spend

import "time"

// Note is an intent that is noted unless there are others of the same wish. Its keys
// are the organisation's in the store. The ledger does not read it.
type Note struct {
	// Wish is the key of intents with the same wish, Like that of those whose resource
	// looks the same, Answer that of the answer to a request with a key.
	Wish, Like, Answer string
	// Intent is its id, "" to look only; Row is the stored text, Owner the asker.
	Intent, Row, Owner string
	// Past are the intents of the wish that do not stand in the way.
	Past []string
	// TTL is how long the store keeps it.
	TTL time.Duration
}

// Ending is how an intent goes on when its call has ended, or before.
type Ending struct {
	// Made is the key of the resource that was made, Wish and Like are those of the Note,
	// and Answer is that of the answer.
	Made, Wish, Like, Answer string
	// Intent is its id. Row is stored in the place of Was, "" for nothing; a row that is
	// no longer Was stays, unless that is "".
	Intent, Was, Row string
	// Known says that Made is written, Unlike that the intent leaves Like.
	Known, Unlike bool
	// Text is stored under Answer, "" for nothing.
	Text string
	// TTL is how long the store keeps it.
	TTL time.Duration
}

// Claim makes a resource that of an intent, unless another one has made it or may have.
type Claim struct {
	Made, Like, Intent, Owner string
	// Named says that the resource has a name to be recognised by.
	Named bool
	TTL   time.Duration
}
