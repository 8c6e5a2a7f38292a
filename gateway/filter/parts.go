package filter

import (
	"time"

	"github.com/tollgate-dev/tollgate/gateway/once/intent"
	"github.com/tollgate-dev/tollgate/gateway/overload"
	"github.com/tollgate-dev/tollgate/policies"
	"github.com/tollgate-dev/tollgate/policies/spend"
	"github.com/tollgate-dev/tollgate/translate"
)

// Path is the way of an exchange through the chain.
type Path struct {
	// Nested says that the exchange is part of another one.
	Nested bool
	// misrouted is why the request matched nothing; raised only after the
	// caller was identified and counted.
	misrouted error
	// entered counts the filters entered in each part of the chain.
	entered [parts]int
	// stages names the stages entered, in order. call is one more than how many
	// of them came before the call part, 0 until that began.
	stages []string
	call   int
}

// Admission is how an exchange was let in: by its credential, its quotas and its place in the concurrent work.
type Admission struct {
	// Slot is its place in the concurrent work, nil without one.
	Slot *overload.Slot
	// badToken says that the caller's token was not accepted.
	badToken bool
	// counted says that a nested exchange was taken from the caller's quotas with that
	// which it is part of, and uncounted that the store was away then. Calls under way at
	// once begin with uncounted: Limit changes as each ends.
	counted, uncounted bool
	// memory is that of a body that was read behind the head, nil without one.
	memory *held
	// shared says that the call was admitted to the account's fair share.
	shared bool
}

// Translation is what the translator of a legacy dialect says of a request and its calls.
type Translation struct {
	// Wish is the common part of repeats of a legacy create, "" for its body.
	Wish string
	// origin is the template that the translator wrote into the body, nil for none.
	origin *translate.Origin
	// asked names the operations of a legacy request, nil before its translator has read
	// it.
	asked []string
	// lost are the fields of a legacy request that v2 has no place for.
	lost []string
}

// Body is the body of a call as it is judged and sent.
type Body struct {
	// Doc is the decoded body, meaningful when HasDoc.
	Doc    any
	HasDoc bool
	// Unknown are the members that were set aside, nil for none.
	Unknown map[string]any
	// Labels are those of the resource that the call makes.
	Labels spend.Labels
	// named is the body before its template's values were written into it,
	// nil when none were.
	named any
	// checks counts how often a body was held against the schema.
	checks int
	// withheld are the variables that OwnKeys took out of the body.
	withheld []string
}

// Access is what a caller may name of the resources of others.
type Access struct {
	// owner is the owner of the object, nil while that was not asked.
	owner *spend.Owner
	// hidden maps the absent ids that were put in the place of others to those; foreign
	// says why, for operators.
	hidden  map[string]string
	foreign []string
}

// Judged is what the policies see and decide.
type Judged struct {
	Input   *policies.Input
	Verdict policies.Decision
	// Unpriced is why there was no price list to see, nil if there was.
	Unpriced error
}

// Approval is the approval of a call that was refused.
type Approval struct {
	// grant is the approval of the call, nil for nothing.
	grant *grant
	// question names the question that its refusal is, "" before that was asked.
	question string
}

// Money is the cost of a call.
type Money struct {
	// Held is the ledger's reservation for the call, nil for nothing.
	Held *reservation
	// ran is the answer's account of a run, nil before it was read to its end.
	ran *ran
	// usageAsked says that the gateway, and not the caller, has asked for its account.
	usageAsked bool
}

// Once is the state of a call that must not be made twice.
type Once struct {
	Wish intent.Wish
	// Print is the fingerprint of the request.
	Print string
	// Keyed says that the caller sent a key.
	Keyed bool
	// Intent is the call's own; it has an id once it is about to be noted.
	Intent intent.Intent
	// Past are other intents of the wish whose callers wait, too: this is another.
	Past []string
	// Came is when the request was known to be one that may be a repeat, and Asked the same
	// by the store's clock, once that is known.
	Came, Asked time.Time
	// Until is when a wait for other intents ends.
	Until time.Time
	// Noted says that the intent is in the store.
	Noted bool
	// End is how the platform's answer ended the call.
	End intent.Outcome
}
