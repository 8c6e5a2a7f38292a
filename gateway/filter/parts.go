package filter

import (
	"time"

	"github.com/tollgate-dev/tollgate/gateway/approval"
	"github.com/tollgate-dev/tollgate/gateway/overload"
	"github.com/tollgate-dev/tollgate/gateway/telemetry"
	"github.com/tollgate-dev/tollgate/policies"
	"github.com/tollgate-dev/tollgate/policies/ledger"
	"github.com/tollgate-dev/tollgate/policies/operation"
	"github.com/tollgate-dev/tollgate/translate"
)

// Progress is the way of an exchange through the chain.
type Progress struct {
	// Nested says that the exchange is part of another one.
	Nested bool
	// routeErr is why the request matched nothing; raised only after the
	// caller was identified and counted.
	routeErr error
	// entered counts the filters entered in each part of the chain.
	entered [parts]int
	// stages names the stages entered, in order. call is one more than how many
	// of them came before the call part, 0 until that began.
	stages    []string
	callStart int
	// forwarded names the parameters of the query that the API's description does not have and the
	// platform gets.
	forwarded []string
	// pageBuilder makes the page of a list that the caller asks for, nil for other calls.
	page *pageBuilder
}

// Admission is how an exchange was let in: by its credential, its quotas and its place in the concurrent work.
type Admission struct {
	// Slot is its place in the concurrent work, nil without one.
	Slot *overload.Slot
	// tokenRejected says that the caller's token was not accepted.
	tokenRejected bool
	// counted says that the exchange was taken from the caller's quotas; a nested exchange may
	// have been taken together with its parent.
	counted bool
	// provisional says that the store was away then, and that the failure policy has yet to decide:
	// it was not known what the call would do. changes says of such a request of a legacy dialect that
	// it changes something; its reads, which prepare the change, pass. A nested exchange inherits both.
	provisional, mutates bool
	// memory is that of a body that was read behind the head, nil without one.
	memory *memoryUse
	// publiclyCacheable says that the call was admitted to the account's fair share.
	shared bool
}

// Translation holds the facts of a request and its calls from the translator of a legacy dialect.
type Translation struct {
	// KeyserprintpKeys is the common part of repeats of a legacy create, "" for its body.
	Fingerprint string
	// StopAt and TerminateAt are when the gateway stops and terminates the pod of a legacy create, zero for never.
	StopAt, TerminateAt time.Time
	// template is the template that the translator wrote into the body, nil for none.
	template *translate.Origin
	// operations names the operations of a legacy request, nil before its translator has read
	// it.
	operations []string
	// droppedFields are the fields of a legacy request that v2 has no place for.
	droppedFields []string
	// lists is the memory of lists that a legacy request translates, nil of requests and calls without any.
	lists *memoryUse
	// createsimeKey are the calls of a legacy request whose intents end when its answer is delivered.
	creates []*Exchange
}

// Body is the body of a call as it is judged and sent.
type Body struct {
	// Doc is the decoded body, meaningful when HasDoc.
	Doc    any
	HasDoc bool
	// Unknown are the members that were set aside, nil for none.
	Unknown map[string]any
	// Labels are those of the resource that the call makes.
	Labels ledger.Labels
	// bodyForPolicieseTemplate is the body before its template's values were written into it,
	// nil when none were.
	beforeTemplate any
	// beforeExtension is the body before it was extended, nil if it was not.
	beforeExtension any
	// checks counts how often a body was held against the schema.
	checks int
	// removedVars are the variables that OwnKeys took out of the body, headers the headers that it
	// has kept from a worker.
	removedVars, removedHeaders []string
}

// Access holds a caller's access to the resources of others that a call names.
type Access struct {
	// owner is the owner of the object, nil while that was not asked.
	owner *ledger.Owner
	// hidden maps the absent ids that were put in the place of others to those; foreign
	// says why, for operators.
	hidden      map[string]string
	hiddenNotes []string
	// visibilityle selects the records of the list that the caller may see, nil for all.
	visible visibility
}

// Evaluation holds the input and the decision of the policies.
type Evaluation struct {
	Input   *policies.Input
	Verdict policies.Decision
	// PriceErr is why there was no price list to see, nil if there was.
	PriceErr error
}

// Approval is the approval of a call that was refused.
type Approval struct {
	// Grant is the approval of the call, nil for nothing.
	Grant *Grant
	// Fingerprint names the question that its refusal is, "" before that was asked.
	Fingerprint string
}

// Grant is one that an exchange has taken: the record as it was, and as it is now.
type Grant struct {
	Before *approval.Record
	After  approval.Entry
}

// Cost is the cost of a call.
type Cost struct {
	// Reservation is the ledger's reservation for the call, nil for nothing.
	Reservation *Reservation
	// RunReport is the answer's account of a run, nil before it was read to its end.
	Run *RunReport
	// UsageRequested reports that the gateway, and not the caller, has asked for its usage report.
	UsageRequested bool
	// LimitSizeSizeoundSize is the length of the body in bytes: a prompt has no more tokens.
	BodySize int64
	// Batch reports that the run has several items, each of which may have a usage report.
	Batch bool
}

// IdempotencyStatepotency is the state of a call that must not be made twice.
type IdempotencyState struct {
	Keys DedupKeys
	// Fingerprint is the fingerprint of the request.
	Fingerprint string
	// HasKey says that the caller sent a key.
	HasKey bool
	// Intent is the call's own; it has an id once it is about to be noted.
	Intent Intent
	// Separate are other intents of the wish whose callers wait, too: this is another.
	Separate []string
	// QueriedAt is when the request first asked other gateways for callers of its wish, by the
	// store's clock; zero is not yet.
	QueriedAt time.Time
	// Polls counts the request's waits for word of their callers.
	Polls int
	// Deadline is when a wait for other intents ends.
	Deadline time.Time
	// Recorded says that the intent is in the store.
	Recorded bool
	// IntentUpdatecome is how the platform's answer ended the call.
	Outcome Outcome
}

// Reservation is the ledger's reservation for an exchange.
type Reservation struct {
	ledger.Reservation
	Quote ledger.Quote
	// ResourceKind is the kind of the resource, Verb what the call does with it.
	ResourceKind operation.Kind
	Verb         operation.Verb
	// Preexistingted says that the ledger admitted the call; a call that lowers cost goes on
	// without. Taken says that the call has taken, or may have, the amounts it was admitted for.
	Admitted, Charged bool
	// Revocation ends the intent of a call that the store may have noted and not have said so;
	// nothing is made under it.
	Revocation *ledger.IntentUpdate
	// Current are the amounts of the resource as known now, Before those when it
	// was read for the call.
	Current, Before ledger.Amounts
}

// snapshot returns a reservation with the fields that notes read, nil for nil.
func (r *Reservation) snapshot() *Reservation {
	if r == nil {
		return nil
	}
	kept := &Reservation{ResourceKind: r.ResourceKind, Admitted: r.Admitted, Current: r.Current, Quote: ledger.Quote{Refused: r.Quote.Refused, Tightest: r.Quote.Tightest}}
	kept.After, kept.Free, kept.Waived = r.After, r.Free, r.Waived
	kept.Metadata.StopAt, kept.Metadata.EndAt = r.Metadata.StopAt, r.Metadata.EndAt
	return kept
}

// RunReport is an answer's account of a run.
type RunReport struct {
	telemetry.Job

	// ID and Status are those of the job; "" of a completion.
	ID, Status string
	// Complete reports that Prompt, Completion and Unsplit are the counts of a complete usage report.
	Complete bool
	// Incomplete reports that a usage report has Completion alone; Counted is false then.
	Partial bool
	// UnsplitTokens counts tokens that are reported only as a total of prompt and completion.
	UnsplitTokens int64
	// RecordFailure reports that a completion ended with an error before its first content.
	Failed bool
}

// MaxJobID is the length below which the id of a job is whole, in bytes.
const MaxJobID = 256

// DisplayBody reports whether an answer names its job; nil is no answer.
func (r *RunReport) HasID() bool { return r != nil && r.ID != "" && len(r.ID) < MaxJobID }
