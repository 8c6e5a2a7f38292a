package replay

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/tollgate-dev/tollgate/policies/policyinput"
)

// maxEvent is the size of the largest event, in bytes.
const maxEvent = 32 << 20

// event is a decision in the log.
type event struct {
	Example  // without the decisions
	old      verdict
	lifted   []lifted
	recorded *policyinput.Recorded
}

// verdict is the part of a decision that replay compares.
type verdict struct {
	deny, warn, shadow []Reason
	failed             string // why there was no decision
}

func (v *verdict) refused() bool { return v.failed != "" || len(v.deny) > 0 }

// lifted is a violation despite which the call was allowed: by an approval, or by an exception for this violation.
type lifted struct {
	Reason
	approved bool
}

// denies returns the violations among list that the call's approval and exceptions do not cover. An approval covers all violations of a policy.
func (e *event) denies(list []Reason) []Reason {
	return slices.DeleteFunc(list, func(r Reason) bool {
		return slices.ContainsFunc(e.lifted, func(l lifted) bool { return l.Reason == r || l.approved && l.Policy == r.Policy })
	})
}

// errOther is wrapped by errors about events that are not decisions of a gateway.
var errOther = errors.New("not a decision made by a gateway")

// each calls visit for the events of a log: one JSON object per line, or one array, plain or gzipped.
func each(r io.Reader, visit func(at string, raw []byte) error) error {
	in := bufio.NewReaderSize(r, 64<<10)
	if magic, err := in.Peek(2); err == nil && bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		zip, err := gzip.NewReader(in)
		if err != nil {
			return fmt.Errorf("gzip: %w", err)
		}
		in = bufio.NewReaderSize(zip, 64<<10)
	}
	if first, err := in.Peek(1); err == nil && first[0] == '[' {
		return eachItem(in, visit)
	}
	lines := bufio.NewScanner(in)
	lines.Buffer(make([]byte, 64<<10), maxEvent)
	for n := 1; lines.Scan(); n++ {
		line := bytes.TrimSpace(lines.Bytes())
		if len(line) == 0 {
			continue
		}
		if err := visit(fmt.Sprintf("line %d", n), line); err != nil {
			return err
		}
	}
	return lines.Err()
}

func eachItem(in io.Reader, visit func(at string, raw []byte) error) error {
	d := json.NewDecoder(in)
	if _, err := d.Token(); err != nil {
		return err
	}
	for n := 1; d.More(); n++ {
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return fmt.Errorf("event %d: %w", n, err)
		}
		if err := visit(fmt.Sprintf("event %d", n), raw); err != nil {
			return err
		}
	}
	_, err := d.Token()
	return err
}

// parse decodes an event. Member names are case-sensitive.
func parse(raw []byte) (*event, error) {
	m, err := decoded(raw)
	if err != nil {
		return nil, err
	}
	e := &event{}
	e.DecisionID, e.Time = text(m, "decision_id"), text(m, "timestamp")
	e.Org = text(object(m, "custom"), "org")
	doc, masked, err := inputOf(m)
	if err != nil {
		return e, err
	}
	caller := object(doc, "caller")
	e.Org = cmp.Or(e.Org, text(caller, "org"))
	e.Team, e.Key, e.Operation = text(caller, "team"), text(caller, "key"), text(object(doc, "request"), "operation")
	if e.recorded, err = policyinput.ParseRecorded(doc, masked); err != nil {
		return e, err
	}
	return e, e.verdict(m)
}

func object(m map[string]any, member string) map[string]any {
	o, _ := m[member].(map[string]any)
	return o
}

func text(m map[string]any, member string) string {
	s, _ := m[member].(string)
	return s
}

func decoded(raw []byte) (m map[string]any, err error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(&m); err != nil {
		return nil, fmt.Errorf("not JSON: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("not a single JSON object")
	}
	return m, nil
}

// ParseInput returns the input of an event, and its masked members, as arguments for policyinput.ParseRecorded.
func ParseInput(raw []byte) (input map[string]any, masked []string, err error) {
	m, err := decoded(raw)
	if err != nil {
		return nil, nil, err
	}
	return inputOf(m)
}

func inputOf(m map[string]any) (input map[string]any, masked []string, err error) {
	input, ok := m["input"].(map[string]any)
	if !ok {
		return nil, nil, fmt.Errorf("%w: input is missing", errOther)
	}
	masked, err = hiddenBelowInput(m)
	return input, masked, err
}

// verdict decodes the decision.
func (e *event) verdict(m map[string]any) error {
	if fault, ok := m["error"].(map[string]any); ok {
		e.old.failed = "no decision: " + text(fault, "message")
		return nil
	}
	result, ok := m["result"].(map[string]any)
	if !ok {
		return fmt.Errorf("%w: result is missing", errOther)
	}
	for name, take := range map[string]func(r Reason, exception string){
		"deny":     func(r Reason, _ string) { e.old.deny = append(e.old.deny, r) },
		"warn":     func(r Reason, _ string) { e.old.warn = append(e.old.warn, r) },
		"shadow":   func(r Reason, _ string) { e.old.shadow = append(e.old.shadow, r) },
		"excepted": func(r Reason, by string) { e.lifted = append(e.lifted, lifted{r, strings.HasPrefix(by, "ap-")}) },
	} {
		items, _ := result[name].([]any)
		if len(items) == 0 && result[name] != nil {
			return fmt.Errorf("recorded %s must be a list", name)
		}
		for _, item := range items {
			v, _ := item.(map[string]any)
			take(Reason{text(v, "policy"), text(v, "message"), text(v, "pointer")}, text(v, "exception"))
		}
	}
	return nil
}

// hiddenBelowInput returns the pointers of masked and erased members of the input. Masks in the result only affect the texts of
// reasons, which are compared as they are.
func hiddenBelowInput(m map[string]any) ([]string, error) {
	var out []string
	for _, name := range []string{"masked", "erased"} {
		list, ok := m[name].([]any)
		if !ok && m[name] != nil {
			return nil, fmt.Errorf("%s must be a list", name)
		}
		for _, item := range list {
			p, ok := item.(string)
			if !ok {
				return nil, fmt.Errorf("%s contains %v, which is not a pointer", name, item)
			}
			if rest, ok := strings.CutPrefix(p, "/input"); ok && (rest == "" || rest[0] == '/') {
				out = append(out, rest)
			}
		}
	}
	return out, nil
}
