package gateway

import (
	"errors"
	"fmt"

	"github.com/tollgate-dev/tollgate/gateway/filter"
	"github.com/tollgate-dev/tollgate/gateway/money/charge"
	"github.com/tollgate-dev/tollgate/gateway/once"
)

// chainOrder is the order of the chain, by the names of stages. Cheap before dear, identity before quota, quota before bodies; size before
// everything.
func chainOrder() (order struct{ Head, Content, Call []string }) {
	order.Head = []string{"Stamp", "Size", "Match", "Wire", "Identify", "Legacy", "Admit", "Count", "Routed"}
	order.Content = []string{"Receive", "Estimate", "Local", "Decode", "AdmitBody", "Brownout", "Translate"}
	order.Call = []string{
		"Count", "OwnKeys", "Labels", "Repeats", "Ownership", "Judge", "Pages", "Recount", "Reserve", "Audit", "Rebuild", "Relay", "Measure",
		"Addresses", "Lookup", "Share",
	}
	return order
}

// stages are filters by the names of their stages, which have a part: Call.Judge.
type stages map[string]filter.Filter

// arrange fills the chain of a configuration with the stages that features supply. Each name of the order must have one supplier, and each stage
// a place in the order.
func arrange(features []feature, c *compiled) error {
	all, faults := make(stages), []error(nil)
	for i := range features {
		if features[i].stages == nil {
			continue
		}
		for name, stage := range features[i].stages(c) {
			if all[name] != nil {
				faults = append(faults, fmt.Errorf("feature %s supplies the stage %s, which another feature supplies", features[i].name, name))
			}
			all[name] = stage
		}
	}
	part := func(part string, names []string) []filter.Filter {
		list := make([]filter.Filter, len(names))
		for i, name := range names {
			name = part + "." + name
			if list[i] = all[name]; list[i] == nil {
				faults = append(faults, fmt.Errorf("no feature supplies the stage %s", name))
			}
			delete(all, name)
		}
		return list
	}
	order := chainOrder()
	c.chain.Head, c.chain.Content, c.chain.Call = part("Head", order.Head), part("Content", order.Content), part("Call", order.Call)
	for name := range all {
		faults = append(faults, fmt.Errorf("the order of the chain has no place for the stage %s", name))
	}
	return errors.Join(faults...)
}

func (g *Gateway) trafficStages(c *compiled) stages {
	return stages{
		"Head.Stamp":      filter.Stamp{},
		"Head.Size":       filter.Size{},
		"Head.Match":      filter.Match{Table: c.table, API: g.api, Run: g.runs},
		"Head.Wire":       filter.Wire{},
		"Head.Routed":     filter.Routed{API: g.api, Run: g.runs},
		"Content.Receive": filter.Receive{Memory: g.room.Bodies, Keyless: g.room.Keyless},
		"Content.Local":   filter.Local{Answers: c.answers},
		"Content.Decode":  filter.Decode{},
		"Call.Pages":      filter.Pages{Upstream: c.client},
		"Call.Rebuild":    filter.Rebuild{Agent: agent(g.deps.Version)},
		"Call.Relay":      filter.Relay{Upstream: c.client, Run: c.runs.Client},
		"Call.Addresses":  c.addresses,
	}
}

func (g *Gateway) callerStages(c *compiled) stages {
	return stages{
		"Head.Identify":  filter.Identify{Guard: g.counts.Guard, Keyless: c.cfg.Legacy.Keyless.Org},
		"Call.OwnKeys":   filter.OwnKeys{},
		"Call.Ownership": &filter.Ownership{Reader: c.reader},
	}
}

func (g *Gateway) countStages(*compiled) stages {
	count := filter.Count{Recorder: g.recorder}
	return stages{"Head.Count": count, "Call.Count": count, "Call.Recount": filter.Recount{Recorder: g.recorder}, "Call.Share": filter.Share{}}
}

func overloadStages(c *compiled) stages {
	priorities := filter.Priorities{Names: c.legacy.Names(), Urgency: c.legacy.Urgency()}
	return stages{"Head.Admit": filter.Admit{Priorities: priorities}, "Content.AdmitBody": filter.AdmitBody{Priorities: priorities}}
}

func (g *Gateway) legacyStages(c *compiled) stages {
	return stages{
		"Head.Legacy":       filter.Legacy{Names: c.legacy.Names()},
		"Content.Brownout":  filter.Brownout{},
		"Content.Translate": &filter.Translate{API: g.api, Lists: g.room.Lists},
	}
}

func (g *Gateway) onceStages(c *compiled) stages {
	return stages{"Call.Repeats": once.Repeats{}, "Call.Lookup": once.Lookup{}}
}

func (g *Gateway) policyStages(c *compiled) stages {
	return stages{"Call.Judge": &filter.Judge{
		Policies: c.engine, Reads: filter.ReadsOf(g.api), Template: g.api.Operation("getTemplate"), Templates: g.api.Operation("listTemplates"),
		Reader: c.reader, Recorder: g.recorder,
	}}
}

func (g *Gateway) spendStages(c *compiled) stages {
	return stages{
		"Call.Labels":  filter.Labels{},
		"Call.Reserve": &charge.Reserve{Reader: c.reader, Workers: g.api.Operation("listEndpointWorkers"), Unresolved: g.current.started.Spend.Unresolved, Costs: g.money.Ledger.Costs, Refusing: c.refusing},
		"Call.Measure": charge.Measure{},
	}
}

func (g *Gateway) estimateStages(*compiled) stages {
	return stages{"Content.Estimate": filter.Estimate{Run: g.questions.AnswerEstimate}}
}

func auditStages(*compiled) stages {
	return stages{"Call.Audit": filter.Audit{}}
}
