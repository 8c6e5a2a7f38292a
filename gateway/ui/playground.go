package ui

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
	"github.com/tollgate-dev/tollgate/gateway/operator"
	"github.com/tollgate-dev/tollgate/policies/replay"
)

// playground is a draft of policies, a call and, once one was asked, an answer.
type playground struct {
	operator.Draft

	Decision, Input, Since string
	Tried                  *operator.TrialResult
	Replayed               *replay.Report
}

// sample is the text that a draft begins with.
const sample = `package policies.draft

deny contains msg if {
	count := input.resource.after.gpu.count
	print("GPUs:", count)
	count > 1
	msg := sprintf("%d GPUs are more than one", [count])
}
`

// blankPlayground shows the form, filled in as far as the URL says.
func blankPlayground(v *visit) (any, int, string) {
	if _, err := v.rows.Endpoint(tryRow).Admit(v.scope, v.org); err != nil {
		status, fault := adminapi.StatusOf(err)
		return nil, status, fault
	}
	return playground{Draft: operator.Draft{Rego: sample}, Decision: v.r.FormValue("decision"), Since: "7d"}, 0, ""
}

// playground shows a draft's verdict on a call, or the verdicts that it would have changed. Nothing of it is in force.
func (c *Console) playground(v *visit) {
	lines := strings.NewReplacer("\r\n", "\n") // as forms write them
	p := playground{
		Draft:    operator.Draft{Rego: lines.Replace(v.r.PostFormValue("rego")), Policies: lines.Replace(v.r.PostFormValue("policies"))},
		Decision: strings.TrimSpace(v.r.PostFormValue("decision")), Input: lines.Replace(v.r.PostFormValue("input")), Since: v.r.PostFormValue("since"),
	}
	var err error
	if v.r.PostFormValue("do") == "replay" {
		err = p.replay(v)
	} else {
		err = p.try(v)
	}
	status, fault := adminapi.StatusOf(err)
	v.render(cmp.Or(status, http.StatusOK), "playground", frame{Title: "Playground", Page: "playground", Fault: fault, Data: p})
}

func (p *playground) replay(v *visit) error {
	text, err := json.Marshal(p.Draft)
	if err != nil {
		return err
	}
	report, err := reply[replay.Report](v, replayRow, url.Values{"since": {p.Since}}, text)
	if err == nil {
		p.Replayed = &report
	}
	return err
}

func (p *playground) try(v *visit) error {
	trial := operator.Trial{Draft: p.Draft, Decision: p.Decision}
	if p.Decision == "" {
		in := json.NewDecoder(strings.NewReader(p.Input))
		in.UseNumber()
		if err := in.Decode(&trial.Input); err != nil && !errors.Is(err, io.EOF) {
			return adminapi.BadRequestError{Reason: "the input is no JSON object: " + err.Error()}
		}
	}
	text, err := json.Marshal(trial)
	if err != nil {
		return err
	}
	tried, err := reply[operator.TrialResult](v, tryRow, nil, text)
	if err == nil {
		p.Tried, p.Input = &tried, pretty(tried.Input)
	}
	return err
}

// sourceLine is a line of a draft. Mark is "+" if it was evaluated, "-" if it was not, and a space for neither.
type sourceLine struct {
	N          int
	Mark, Text string
}

// Source returns the lines of the draft's Rego, with the evaluated ones marked.
func (p playground) Source() (out []sourceLine) {
	for i, text := range bytes.Split([]byte(strings.TrimRight(p.Rego, "\n")), []byte("\n")) {
		l := sourceLine{N: i + 1, Mark: " ", Text: string(text)}
		switch {
		case slices.Contains(p.Tried.Covered, l.N):
			l.Mark = "+"
		case slices.Contains(p.Tried.Missed, l.N):
			l.Mark = "-"
		}
		out = append(out, l)
	}
	return out
}

// Coverage is the share of the draft's lines that were evaluated.
func (p playground) Coverage() float64 {
	covered, missed := float64(len(p.Tried.Covered)), float64(len(p.Tried.Missed))
	return covered / max(1, covered+missed)
}
