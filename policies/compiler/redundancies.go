package compiler

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/tollgate-dev/tollgate/config/fault"
	"github.com/tollgate-dev/tollgate/policies/operation"
	"github.com/tollgate-dev/tollgate/policies/policyconfig"
)

// redundancies reports conflicts between entry i and other entries for the same callers, and cases in which entry i never has an effect
// because of another entry. The errors have paths below the organisation's configuration. params are the parameters of the entries, or nil
// for entries of policies not in the library.
func redundancies(entries []policyconfig.Entry, params []map[string]any, i int) []error {
	var out fault.Found
	e, given := &entries[i], params[i]
	p, ok := Lookup(e.Policy)
	if !ok {
		return nil
	}
	at := fault.Index("policies", i)
	for j := range entries {
		other := &entries[j]
		theirs := params[j]
		if j == i || theirs == nil || other.Mode.OrDefault() != policyconfig.ModeEnforce || !meets(e, other) {
			continue
		}
		switch {
		case e.Policy == "field_values":
			out = append(out, forcedAgainst(at, given, other.Policy, theirs, j)...)
		case e.Policy == "operations" && other.Policy == "read_only":
			out = append(out, readOnly(at, given, theirs["allow_stopping"] == true, j)...)
		case e.Policy != other.Policy || len(e.Params) == 0:
		case e.Approvable == other.Approvable && e.Ratchet == other.Ratchet && everyone(other) && (j < i || !everyone(e)) &&
			p.params.asStrict(theirs, given):
			out.Add(at, "has no effect because policies[%d] applies to all callers and is at least as strict: delete one of the entries", j)
		case j < i && e.Mode.OrDefault() == policyconfig.ModeEnforce:
			out = append(out, p.params.nothingCommon(at, given, theirs, j)...)
		}
	}
	return out
}

// asStrict reports whether loose allows everything that strict allows.
func (p params) asStrict(strict, loose map[string]any) bool {
	for name, v := range loose {
		w, given := strict[name]
		if reflect.DeepEqual(v, w) {
			continue
		}
		if !given {
			return false
		}
		switch {
		case slices.Contains(p.allowLists, name):
			list, _ := w.([]any)
			all, _ := v.([]any)
			if len(list) == 0 || slices.ContainsFunc(list, func(x any) bool { return !coveredBy(all, x) }) {
				return false
			}
		case strings.HasPrefix(name, "max_") || name == "max":
			n, ok1 := number(w)
			most, ok2 := number(v)
			if !ok1 || !ok2 || n > most {
				return false
			}
		default:
			return false
		}
	}
	return true
}

// nothingCommon reports allow-lists and hours that do not overlap with the allow-lists and hours of an earlier entry.
func (p params) nothingCommon(at string, given, theirs map[string]any, j int) []error {
	var out fault.Found
	const text = "does not overlap with policies[%d] for the same callers, so the two entries refuse everything: combine them in one entry"
	for _, name := range p.allowLists {
		mine, _ := given[name].([]any)
		list, _ := theirs[name].([]any)
		if len(mine) == 0 || len(list) == 0 || !reflect.DeepEqual(given["by_offer"], theirs["by_offer"]) {
			continue
		}
		out.If(!slices.ContainsFunc(mine, func(v any) bool { return coveredBy(list, v) }) &&
			!slices.ContainsFunc(list, func(v any) bool { return coveredBy(mine, v) }),
			at+".params."+name, text, j)
	}
	if from, ok := given["from"].(string); ok && given["timezone"] == theirs["timezone"] {
		to, _ := given["to"].(string)
		begin, _ := theirs["from"].(string)
		end, _ := theirs["to"].(string)
		out.If(from < to && begin < end && (to <= begin || end <= from), at+".params.from", text, j)
	}
	if days, ok := given["days"].([]any); ok {
		list, _ := theirs["days"].([]any)
		out.If(!slices.ContainsFunc(days, func(d any) bool { return slices.Contains(list, d) }), at+".params.days", text, j)
	}
	return out
}

// readOnly reports allowed operations that read_only refuses.
func readOnly(at string, given map[string]any, stopping bool, j int) []error {
	var out fault.Found
	allowed, _ := given["allow"].([]any)
	for i, v := range allowed {
		row, ok := operation.Lookup(fmt.Sprint(v))
		saves := stopping && slices.Contains([]operation.Verb{
			operation.VerbDelete, operation.VerbStop, operation.VerbCancel,
			operation.VerbAction,
		}, row.Verb)
		out.If(ok && row.Verb.Changes() && !saves, fault.Index(at+".params.allow", i),
			"%q is not a read: policies[%d] (read_only) refuses it", v, j)
	}
	return out
}

// forced lists the fields of a body that other policies limit to a maximum or to a list of values.
var forced = []struct{ pointer, policy, param string }{ //nolint:gochecknoglobals // never changed
	{"/gpu/count", "gpu_count", "max_per_pod"},
	{"/gpu/id", "gpu_allow_list", "gpus"},
	{"/cloud", "cloud_tier", "clouds"},
	{"/disk", "disk", "max_gb"},
	{"/cpu/vcpuCount", "cpu_flavors", "max_vcpus"},
}

// forcedAgainst reports values that field_values sets in bodies and that another policy refuses.
func forcedAgainst(at string, given map[string]any, policy string, theirs map[string]any, j int) []error {
	var out fault.Found
	for _, how := range []string{"force", "defaults"} {
		operations, _ := given[how].(map[string]any)
		for id, fields := range operations {
			values, _ := fields.(map[string]any)
			for _, f := range forced {
				value, set := values[f.pointer]
				limit, limited := theirs[f.param]
				if !set || !limited || f.policy != policy {
					continue
				}
				list, isList := limit.([]any)
				refused := isList && !coveredBy(list, value) || exceeds(value, limit)
				out.If(refused, fault.Key(fault.Key(at+".params."+how, id), f.pointer), "%v is refused by policies[%d] (%s)", value, j, policy)
			}
		}
	}
	return out
}
