package filter

import (
	"time"

	"github.com/tollgate-dev/tollgate/gateway/approval"
	"github.com/tollgate-dev/tollgate/gateway/overload"
	"github.com/tollgate-dev/tollgate/gateway/telemetry"
	"github.com/tollgate-dev/tollgate/policies"
	"github.com/tollgate-dev/tollgate/policies/ledger"
	"github.com/tollgate-dev/tollgate/policies/operation"
)

// Progress records the stages that an exchange has reached, and the start time of each stage.
type Progress struct {
	// Nested reports that the exchange is a call of another exchange.
	Nested bool
	// routeErr is the reason why no route matched. It is returned only after authentication and rate limiting.
	routeErr error
	// entered counts the filters called in each part of the chain.
	entered [parts]int
	// stages are the names of the stages entered, in order. callStart is the index of the first stage of the Call part plus one, 0 before
	// that part.
	stages    []string
	callStart int
	// clock measures the stages.
	clock stageClock
	// keylessPath reports that In.Path was searched for callers' keys and contains none.
	keylessPath bool
	// forwarded lists query parameters that are missing from the API description but are sent to the platform.
	forwarded []string
	// page builds the caller's page of a list, nil for other calls.
	page *pageBuilder
}

// Admission is the state of the stages that decide whether to accept a request: authentication, rate limits, concurrency limits, memory
// limits for bodies, and the team's share of the platform's rate limit.
type Admission struct {
	// Slot is the slot of the concurrency limit, nil without one.
	Slot *overload.Slot
	// tokenRejected reports that the caller's token was not accepted.
	tokenRejected bool
	// counted reports that the exchange was counted against the caller's quotas. A nested exchange may have been counted together with its
	// parent.
	counted bool
	// provisional reports that the call was admitted without being counted, because the store was down and the effect of the call on costs was
	// not known yet; see [RecheckRateLimit]. mutates reports that a provisionally admitted legacy request changes something, so that the reads
	// that prepare the change are admitted too. Nested exchanges inherit both fields.
	provisional, mutates bool
	// memory is the memory taken for a body that is read after the Headers part, or nil.
	memory *memoryUse
	// shared reports that FairShare admitted the call.
	shared bool
}

// Translation holds what the translator of a legacy dialect has determined about a request or one of its calls.
type Translation struct {
	// Fingerprint is the fingerprint of a legacy request that creates a resource. If it is "", the fingerprint is computed from the body.
	Fingerprint string
	// StopAt and TerminateAt are the times when the gateway stops and terminates the new pod, zero for never.
	StopAt, TerminateAt time.Time
	// Parsed is the translator's parsed form of the body, nil until the translator has read the body.
	Parsed any
	// Operations are the operation names of a legacy request, nil until the request has been parsed.
	Operations []string
	// DroppedFields are the fields of a legacy request that v2 cannot express.
	DroppedFields []string
	// template is the template whose values the translator wrote into the body, or nil.
	template *TemplateOrigin
	// lists is the memory for the lists read for a legacy request, nil if it uses no lists.
	lists *memoryUse
	// creates are the calls whose intents end when the response is delivered.
	creates []*Exchange
}

// TemplateOrigin identifies a template whose values a translator has copied into a body. The body does not name the template, but policies
// treat the call as if the body did.
type TemplateOrigin struct {
	// TemplateID is the ID that the caller named.
	TemplateID string
	// Record is the template if the platform does not have it: an endpoint's virtual template, which exists only in the legacy dialects. Nil
	// means that the template can be read from the platform.
	Record any
}

// Body is the body of a call as it is checked and sent.
type Body struct {
	// Doc is the decoded body. It is valid if HasDoc is set.
	Doc    any
	HasDoc bool
	// Unknown are the members missing from the API description that will be forwarded to the platform, or nil; see [Tenant.Unknown].
	Unknown map[string]any
	// Labels are the labels of the new resource.
	Labels ledger.Labels
	// beforeTemplate is the body before the template's values were written into it, nil if none were.
	beforeTemplate any
	// beforeExtension is the body before ExtendBody, nil if it was not extended.
	beforeExtension any
	// checks counts the schema validations of the body.
	checks int
	// removedVars are environment variables and removedHeaders are headers that were removed because they contained a caller's key.
	removedVars, removedHeaders []string
}

// Access is the result of CheckOwnership: the owner of the resource, the IDs in the call that were replaced because their resources are
// hidden from the caller, and the visible records of a list.
type Access struct {
	// owner is the owner of the resource, nil until it is determined.
	owner *ledger.Owner
	// hidden maps unused IDs to the IDs they replace. hiddenNotes explains the replacements to operators.
	hidden      map[string]string
	hiddenNotes []string
	// visible selects the records of a list that the caller may see, nil for all.
	visible visibility
}

// Evaluation is the input and the result of the policies.
type Evaluation struct {
	Input   *policies.Input
	Verdict policies.Decision
	// PriceErr is the error of reading the price list, nil if it was read.
	PriceErr error
}

// Approval is the state of the approval stage. This stage permits a call that policies or budgets deny if an operator has approved the
// call.
type Approval struct {
	// Grant is the approval used by the call, or nil.
	Grant *Grant
	// Fingerprint identifies the denied call among requests for approval, "" until it is computed.
	Fingerprint string
}

// Grant is an approval used by an exchange. Before and After are the stored record before and after the use. [Approvals].GiveBack restores
// Before.
type Grant struct {
	Before *approval.Record
	After  approval.Entry
}

// Cost holds the reservation for a call, and the facts in the response that determine the cost of the call.
type Cost struct {
	// Reservation is the ledger's reservation for the call, or nil.
	Reservation *Reservation
	// Run is the report about a run in the response, nil until the response has been read to its end.
	Run *RunReport
	// UsageRequested reports that the gateway, not the caller, asked for the usage report.
	UsageRequested bool
	// BodySize is the length of the body in bytes, which is an upper limit for the tokens in the prompt.
	BodySize int64
	// Batch reports that the run has several items, each with its own usage report.
	Batch bool
}

// IdempotencyState is the deduplication state of a call that must not be carried out twice. A request without an idempotency key may find
// the intents of equal requests. For each of these intents, the request then polls the store until it knows whether the caller of the
// intent is still connected. If that caller is connected, the two requests are separate. If that caller has disconnected, this request is a
// repeat, and the response to this request contains the resource that the intent created.
type IdempotencyState struct {
	Keys DedupKeys
	// Fingerprint is the fingerprint of the request.
	Fingerprint string
	// HasKey reports that the caller sent an idempotency key.
	HasKey bool
	// Intent is the intent of this call. Its ID is set before it is recorded.
	Intent Intent
	// Separate lists the intents of equal requests whose callers are still connected. This request is not a repeat of these requests.
	Separate []string
	// QueriedAt is the time, by the store's clock, when other gateways were first asked whether the callers of equal requests are connected.
	// It is zero before that.
	QueriedAt time.Time
	// Polls counts how often the request has polled for the status of other intents.
	Polls int
	// Deadline is the end of the wait for other intents.
	Deadline time.Time
	// Recorded reports that the intent is in the store.
	Recorded bool
	// Outcome is the outcome of the call according to the platform's response.
	Outcome Outcome
}

// Reservation describes the amounts that the ledger reserves for a call. It contains the request to the ledger, the ledger's Quote, and the
// amounts of the resource that the call affects.
type Reservation struct {
	ledger.Reservation
	Quote ledger.Quote
	// ResourceKind is the kind of the resource, Verb the action of the call.
	ResourceKind operation.Kind
	Verb         operation.Verb
	// Admitted reports that the ledger admitted the call. A call that reduces costs proceeds even if the ledger did not. Charged reports that
	// the reserved amounts were, or may have been, charged.
	Admitted, Charged bool
	// Revocation ends an intent that the store may have recorded although it returned an error. It is nil if there is no such intent. It is
	// written together with the settlement of the call, which does not use the intent.
	Revocation *ledger.IntentUpdate
	// Current are the amounts of the resource as known now, Before the amounts when it was read for the call.
	Current, Before ledger.Amounts
}

// SetResource sets the ID of the resource that the call created.
func (r *Reservation) SetResource(id string) { r.Resource = id }

// snapshot returns a copy with only the fields that explanations need. A nil receiver returns nil.
func (r *Reservation) snapshot() *Reservation {
	if r == nil {
		return nil
	}
	kept := &Reservation{
		ResourceKind: r.ResourceKind, Admitted: r.Admitted, Current: r.Current,
		Quote: ledger.Quote{Refused: r.Quote.Refused, Ceilings: r.Quote.Ceilings, Tightest: r.Quote.Tightest},
	}
	kept.After, kept.Free, kept.Waived, kept.Resource = r.After, r.Free, r.Waived, r.Resource
	kept.Metadata.StopAt, kept.Metadata.EndAt = r.Metadata.StopAt, r.Metadata.EndAt
	return kept
}

// RunReport holds the facts about a run that the response contains.
type RunReport struct {
	telemetry.Job

	// ID and Status are the ID and status of the job, "" for a completion.
	ID, Status string
	// Complete reports that Prompt, Completion and UnsplitTokens come from a complete usage report.
	Complete bool
	// Partial reports that only Completion is known. Complete is then false.
	Partial bool
	// UnsplitTokens counts tokens reported only as the sum of prompt and completion.
	UnsplitTokens int64
	// Failed reports that a completion failed before its first content.
	Failed bool
}

// maxJobID is the length in bytes below which a job ID is known to be complete.
const maxJobID = 256

// HasID reports whether the response contains a complete job ID. The receiver may be nil.
func (r *RunReport) HasID() bool { return r != nil && r.ID != "" && len(r.ID) < maxJobID }
