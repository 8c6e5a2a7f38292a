package operator

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"reflect"

	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
)

// Draft is the JSON form of a [policies.Draft]: a proposed change to the policies of an organisation.
type Draft struct {
	// Policies is YAML with the member policies, as in the configuration of an organisation. Its entries replace the entries in
	// force for the same policies.
	Policies string `json:"policies,omitempty"`
	// Rego is one file of a package policies.NAME. It replaces that policy.
	Rego string `json:"rego,omitempty"`
}

// Trial is a request to evaluate a draft of policies for one call. If Decision is set, the call is the recorded call with this ID.
// Otherwise, Input describes the call.
type Trial struct {
	Draft

	// Decision is the ID of a decision in this gateway's log whose input is used.
	Decision string `json:"decision,omitempty"`
	// Input is the policy input. Masked lists the JSON Pointers of its members whose values are unknown because the decision log hides them.
	Input  map[string]any `json:"input,omitempty"`
	Masked []string       `json:"masked,omitempty"`
}

// TrialResult holds the verdicts of a draft's policies for a call.
type TrialResult struct {
	// Policies names the policies the draft changes.
	Policies []string       `json:"policies"`
	Results  []PolicyResult `json:"results"`
	// Undetermined lists the policies whose verdict depends on masked members.
	Undetermined []UndeterminedPolicy `json:"undetermined,omitempty"`
	// Output is the output of print. Covered lists the lines of the draft's Rego that were evaluated, and Missed the lines
	// that were not.
	Output  []string `json:"output,omitempty"`
	Covered []int    `json:"covered,omitempty"`
	Missed  []int    `json:"missed,omitempty"`
	// Input and Masked describe the call.
	Input  map[string]any `json:"input"`
	Masked []string       `json:"masked,omitempty"`
}

// PolicyResult is one verdict of a policy. For a violation, the verdict depends on the mode of the policy: "denies" (enforce), "warns"
// (warn) or "would deny" (shadow). If the policy changes the body, the verdict is "changes".
type PolicyResult struct {
	Policy  string `json:"policy"`
	Verdict string `json:"verdict"`
	Message string `json:"message,omitempty"`
	Field   string `json:"field,omitempty"`
}

// UndeterminedPolicy is a policy without a verdict, because its verdict depends on masked parts of the input. Hidden lists the masked parts
// that the policy read.
type UndeterminedPolicy struct {
	Policy string   `json:"policy"`
	Hidden []string `json:"hidden"`
}

// Endpoints returns the endpoints for drafts. The zero Drafts returns endpoints that can be listed but not called.
func (r Drafts) Endpoints() []adminapi.Endpoint {
	fails := []int{http.StatusConflict, http.StatusUnprocessableEntity} // no log, or limit of time or memory exceeded
	return []adminapi.Endpoint{
		{
			Pattern: "POST /admin/policies/replay", Summary: "Recorded calls whose result a draft policy would change",
			AuditsReads: true, Role: adminapi.Admin, Subject: adminapi.SubjectOrg, Handler: adminapi.HandlerFor(r.replay),
			Body: reflect.TypeFor[Draft](), ErrorStatuses: fails,
		},
		{
			Pattern: "POST /admin/policies/try", Summary: "Verdict of a draft policy for one call", AuditsReads: true, Role: adminapi.Admin,
			Subject: adminapi.SubjectOrg, Handler: adminapi.HandlerFor(r.try),
			Body: reflect.TypeFor[Trial](), ErrorStatuses: fails,
		},
	}
}

// replaying selects the decisions to replay.
type replaying struct {
	adminapi.OrgParam

	Since    adminapi.Since `query:"since" default:"7d" doc:"start of the period: a duration before now, such as 24h, or a time"`
	Examples int            `query:"examples" max:"100" default:"3" doc:"number of calls to return in full for each kind of difference"`
	Draft    adminapi.Body
}

// trying contains the draft and the call.
type trying struct {
	adminapi.OrgParam

	Trial adminapi.Body
}

// readBody decodes a request body with one JSON value and no unknown members.
func readBody(text []byte, into any) error {
	in := json.NewDecoder(bytes.NewReader(text))
	in.UseNumber()
	in.DisallowUnknownFields()
	if err := in.Decode(into); err != nil {
		return adminapi.BadRequestError{Reason: "invalid request body: " + err.Error()}
	}
	if _, err := in.Token(); !errors.Is(err, io.EOF) {
		return adminapi.BadRequestError{Reason: "invalid request body: more than one JSON value"}
	}
	return nil
}
