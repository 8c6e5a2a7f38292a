package world

import (
	"bytes"
	"context"
	"encoding/json"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v5"

	"github.com/tollgate-dev/tollgate/policies/decisionlog"
	"github.com/tollgate-dev/tollgate/policies/policyconfig"
	"github.com/tollgate-dev/tollgate/policies/policyinput"
)

// inputSchema is the published schema of the inputs of policies.
var inputSchema = sync.OnceValues(func() (*jsonschema.Schema, error) {
	return jsonschema.CompileString("input.schema.json", string(policyinput.Schema()))
})

// judged is how many decisions of a gateway are held against the schema: a storm of equal calls says nothing new.
const judged = 100

// first passes the first decisions to a log.
type first struct {
	*decisionlog.Log

	left atomic.Int64
}

// Record implements [filter.Decisions].
func (f *first) Record(e decisionlog.Event) {
	if f.left.Add(-1) >= 0 {
		f.Log.Record(e)
	}
}

// logged returns a decision log whose first inputs are held against their schema, until the
// test ends.
func logged(t testing.TB) *first {
	t.Helper()
	schema, err := inputSchema()
	if err != nil {
		t.Fatal(err)
	}
	cfg := policyconfig.DefaultDecisionLog()
	cfg.Stdout = true
	log, err := decisionlog.New(cfg, decisionlog.Deps{Stdout: inputs{t, schema}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = log.Run(ctx) // it returns why ctx ended
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	f := &first{Log: log}
	f.left.Store(judged)
	return f
}

// inputs is where a decision log is written that has to be of the schema.
type inputs struct {
	t      testing.TB
	schema *jsonschema.Schema
}

// Write implements [io.Writer]. p is whole lines.
func (i inputs) Write(p []byte) (int, error) {
	for line := range bytes.Lines(p) {
		var event struct {
			Input map[string]any `json:"input"`
			Error struct {
				Code string `json:"code"`
			} `json:"error"`
		}
		if err := json.Unmarshal(line, &event); err != nil {
			i.t.Errorf("decision log: %s: %v", line, err)
			continue
		}
		if event.Input == nil {
			if event.Error.Code == "" || event.Error.Code == "input_error" {
				i.t.Errorf("decision log: an event without an input: %s", line)
			}
			continue
		}
		if err := i.schema.Validate(any(event.Input)); err != nil {
			i.t.Errorf("decision log: %#v\n%s", err, line)
		}
	}
	return len(p), nil
}
