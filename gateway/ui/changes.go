package ui

import (
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/tollgate-dev/tollgate/gateway/approval"
	"github.com/tollgate-dev/tollgate/gateway/explain"
)

// Why returns the reason for the denial: the rule that denied the request and, for statuses 400 and 422, the causes in the timeline.
// [requestData.Approved] describes the approval.
func (d requestData) Why() string {
	text := []string{strings.TrimSuffix(ruleOf(d.Detail), ".")}
	for _, s := range d.Sections() {
		for _, x := range s.Stages {
			for _, n := range x.Notes {
				if x.Result == "refused" && n != d.Detail && (d.Status == http.StatusBadRequest || d.Status == http.StatusUnprocessableEntity) {
					text = append(text, strings.TrimPrefix(n, "because: "))
				}
			}
		}
	}
	return readable(strings.Join(text, ": "))
}

// Approved describes the state of the approval request of a denied request, or returns "" for a request without one.
func (d requestData) Approved(f *frame) string {
	r := d.Pending
	switch {
	case r == nil && !d.Expired:
		return ""
	case r == nil:
		return "The approval request has expired. The caller can send the request again to request approval."
	case r.State == approval.Pending:
		return "Or approve the request before " + moment(f.When(r.Until).At) + " (in " + lastingFully(r.Until.Sub(f.now())) + ")."
	case r.Answer == nil:
		return ""
	case r.State == approval.Granted:
		return "Approved by " + r.Answer.By + " until " + moment(f.When(r.Until).At) + ": the caller has to send the same request again."
	case r.State == approval.Used:
		return "The request was approved by " + r.Answer.By + ", and has passed since."
	}
	return "The approval was denied by " + r.Answer.By + strings.TrimSuffix(": "+r.Answer.Reason, ": ") + "."
}

// memberName returns the name of a member of a body, such as gpu.count, for its JSON pointer.
func memberName(pointer string) string {
	return strings.ReplaceAll(strings.TrimPrefix(pointer, "/"), "/", ".")
}

// Changes lists what must change so that the gateway accepts the request.
func (d requestData) Changes() []string {
	var policies []explain.Policy
	for i := range d.Calls {
		policies = append(policies, d.Calls[i].Policies...)
	}
	toPass := slices.Clone(d.ToPass)
	for i, line := range toPass {
		if line == d.Detail {
			toPass[i] = d.Why()
		}
	}
	return changesFor(policies, toPass)
}

// changesFor lists what must change so that the gateway accepts a request, given the results of policies and the conditions of other stages.
// For a denial by a policy, the list names the field that the policy checked, if known, with the allowed values or the policy's message.
func changesFor(policies []explain.Policy, toPass []string) (out []string) {
	var listed []string // lines of toPass that out replaces
	for _, p := range policies {
		line, change := p.Message+" (policy "+p.Policy+").", "Change "+memberName(p.Field)
		if reason, allowed, _ := strings.Cut(p.Message, " (allowed: "); p.Field != "" && len(allowed) > 1 && oneOf.MatchString(reason) {
			line, change = reason+" (policy "+p.Policy+").", "Set "+memberName(p.Field)+" to one of "+strings.TrimSuffix(allowed, ")")
		}
		if p.Field != "" {
			line = change + ": " + line
		}
		if line = upper(line); p.Verdict == "denies" && !slices.Contains(out, line) {
			out, listed = append(out, line), append(listed, p.Policy+": "+p.Message)
		}
	}
	for _, line := range toPass {
		if !slices.ContainsFunc(append(listed, explain.OrApprove), func(s string) bool { return strings.HasPrefix(line, s) }) {
			out = append(out, upper(readable(ruleOf(line))))
		}
	}
	return out
}

// oneOf matches messages about a value that must be one of the listed values, such as the messages of gpu_allow_list. In other messages, the
// allowed values are patterns.
var oneOf = regexp.MustCompile(` is not (allowed|on the allow-list\b.*)$`)
