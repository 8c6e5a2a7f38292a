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

// Draft is a change of the policies of an organisation.
type Draft struct {
	// Policies is YAML with the member policies, as in the section of an organisation. Its entries take the place of those in force for the
	// same policies.
	Policies string `json:"policies,omitempty"`
	// Rego is one file of a package policies.NAME. It takes the place of that policy.
	Rego string `json:"rego,omitempty"`
}

// Trial is a draft and a call. Without Decision, Input has the call.
type Trial struct {
	Draft

	// Decision is the id of a decision in the log of this gateway, whose input is taken.
	Decision string `json:"decision,omitempty"`
	// Input is the input of policies, and Masked lists its unknown members, as pointers.
	Input  map[string]any `json:"input,omitempty"`
	Masked []string       `json:"masked,omitempty"`
}

// TrialResult holds the verdicts of a draft's policies on a call.
type TrialResult struct {
	// Policies names those that the draft is about.
	Policies []string       `json:"policies"`
	Results  []PolicyResult `json:"said"`
	// Undetermined lists the policies whose verdict depends on masked members.
	Undetermined []UndeterminedPolicy `json:"open,omitempty"`
	// Output holds the output of print, Covered and Missed the lines of the draft's Rego that were evaluated and that were not.
	Output  []string `json:"prints,omitempty"`
	Covered []int    `json:"covered,omitempty"`
	Missed  []int    `json:"missed,omitempty"`
	// Input and Masked are those of the call.
	Input  map[string]any `json:"input"`
	Masked []string       `json:"masked,omitempty"`
}

// ResultscyResult is one verdict of a policy: denies, warns, would deny or changes.
type PolicyResult struct {
	Policy  string `json:"policy"`
	Verdict string `json:"verdict"`
	Message string `json:"message,omitempty"`
	Field   string `json:"field,omitempty"`
}

// UndeterminedPolicy is a policy without a verdict, and the places of the input that it looked at and that are masked.
type UndeterminedPolicy struct {
	Policy string   `json:"policy"`
	Hidden []string `json:"hidden"`
}

// Endpoints are the questions of operators about drafts. Those of the zero value can be read, and not be asked.
func (r Drafts) Endpoints() []adminapi.Endpoint {
	fails := []int{http.StatusConflict, http.StatusUnprocessableEntity} // there is no log, or it took too much time or memory
	return []adminapi.Endpoint{
		{
			Pattern: "POST /admin/policies/replay", Summary: "The decisions that other policies would have made on recorded calls", AuditsReads: true, Role: adminapi.Admin, Subject: adminapi.SubjectOrg, Handler: adminapi.HandlerFor(r.replay),
			Body: reflect.TypeFor[Draft](), ErrorStatuses: fails,
		},
		{
			Pattern: "POST /admin/policies/try", Summary: "The verdict of a policy that is not in force on one call", AuditsReads: true, Role: adminapi.Admin, Subject: adminapi.SubjectOrg, Handler: adminapi.HandlerFor(r.try),
			Body: reflect.TypeFor[Trial](), ErrorStatuses: fails,
		},
	}
}

// replaying selects the decisions to be made again.
type replaying struct {
	adminapi.OrgParam

	Since    adminapi.Since `query:"since" default:"7d" doc:"only entries no older than a duration, such as 24h, or than a time"`
	Examples int            `query:"examples" max:"100" default:"3" doc:"how many calls of each kind are told in full"`
	Draft    adminapi.Body
}

// trying says which call a draft is tried on.
type trying struct {
	adminapi.OrgParam

	Trial adminapi.Body
}

// readBody reads the content of a request, one JSON value with known members.
func readBody(text []byte, into any) error {
	in := json.NewDecoder(bytes.NewReader(text))
	in.UseNumber()
	in.DisallowUnknownFields()
	if err := in.Decode(into); err != nil {
		return adminapi.BadRequestError{Reason: "the content is not as described: " + err.Error()}
	}
	if _, err := in.Token(); !errors.Is(err, io.EOF) {
		return adminapi.BadRequestError{Reason: "the content is more than one value"}
	}
	return nil
}
