package policies

import (
	"strconv"
	"time"

	"github.com/tollgate-dev/tollgate/policies/catalog"
	"github.com/tollgate-dev/tollgate/policies/operation"
)

// inputVersion is the version of the input document. It grows when a member
// changes its meaning or goes; new members do not change it.
const inputVersion = 1

// node is an object of the input document whose members are known by name,
// so that only those a policy reads are ever converted.
type node interface {
	members() []string
	member(name string) any
}

// document is the root of the input as policies see it. Its shape is public:
// docs/policies.md and input.schema.json describe it.
type document struct {
	in   *Input
	kind operation.Kind
	verb operation.Verb
}

func (document) members() []string {
	return []string{"caller", "catalog", "cost", "request", "resource", "spend", "time", "version"}
}

func (d document) member(name string) any {
	switch name {
	case "caller":
		return callerNode{&d.in.Caller}
	case "catalog":
		return d.in.Catalog
	case "cost":
		return costNode{&d.in.Cost}
	case "request":
		return requestNode{&d.in.Request, d.verb}
	case "resource":
		return resourceNode{&d.in.Resource, d.kind}
	case "spend":
		return spendNode{&d.in.Spend}
	case "time":
		return timeNode{d.in.Time}
	case "version":
		return inputVersion
	default:
		return absent
	}
}

// absentValue stands for a member that is not there.
type absentValue struct{}

var absent = absentValue{}

type callerNode struct{ c *Caller }

func (callerNode) members() []string { return []string{"key", "org", "roles", "team"} }

func (n callerNode) member(name string) any {
	switch name {
	case "key":
		return n.c.Key
	case "org":
		return n.c.Org
	case "roles":
		return n.c.Roles
	case "team":
		return n.c.Team
	default:
		return absent
	}
}

type requestNode struct {
	r    *Request
	verb operation.Verb
}

func (requestNode) members() []string {
	return []string{"body", "dialect", "method", "operation", "params", "path", "query", "settles", "verb"}
}

func (n requestNode) member(name string) any {
	switch name {
	case "body":
		return n.r.Body
	case "dialect":
		return n.r.Dialect
	case "method":
		return n.r.Method
	case "operation":
		return n.r.Operation
	case "params":
		return n.r.Params
	case "path":
		return n.r.Path
	case "query":
		return n.r.Query
	case "settles":
		return n.verb.HasAfter()
	case "verb":
		return string(n.verb)
	default:
		return absent
	}
}

type resourceNode struct {
	r    *Resource
	kind operation.Kind
}

func (resourceNode) members() []string { return []string{"after", "current", "kind", "template"} }

func (n resourceNode) member(name string) any {
	switch name {
	case "after":
		return n.r.After
	case "current":
		return n.r.Current
	case "kind":
		return string(n.kind)
	case "template":
		if n.r.Template == nil {
			return absent
		}
		return templateNode{n.r.Template}
	default:
		return absent
	}
}

type templateNode struct{ t *Template }

func (templateNode) members() []string { return []string{"id", "own", "public", "record"} }

func (n templateNode) member(name string) any {
	switch name {
	case "id":
		return n.t.ID
	case "own":
		return n.t.Own
	case "public":
		return n.t.Public
	case "record":
		return n.t.Record
	default:
		return absent
	}
}

type costNode struct{ c *Cost }

func (costNode) members() []string {
	return []string{"as_of", "basis", "gpus", "known", "reason", "usd_per_gpu_hour", "usd_per_hour"}
}

func (n costNode) member(name string) any {
	switch name {
	case "as_of":
		if n.c.AsOf.IsZero() {
			return nil
		}
		return n.c.AsOf.UTC().Format(time.RFC3339Nano)
	case "basis":
		return n.c.Basis
	case "gpus":
		return n.c.GPUs
	case "known":
		return n.c.Known
	case "reason":
		return n.c.Reason
	case "usd_per_gpu_hour":
		return n.c.PerGPU
	case "usd_per_hour":
		return n.c.Hourly
	default:
		return absent
	}
}

type spendNode struct{ s *Spend }

func (spendNode) members() []string { return []string{"key", "known", "org", "team"} }

func (n spendNode) member(name string) any {
	switch name {
	case "key":
		return accountNode{&n.s.Key}
	case "known":
		return n.s.Known
	case "org":
		return accountNode{&n.s.Org}
	case "team":
		return accountNode{&n.s.Team}
	default:
		return absent
	}
}

type accountNode struct{ a *Account }

func (accountNode) members() []string {
	return []string{
		"burn", "burn_limit", "day", "day_limit", "gpus", "month", "month_limit", "pods", "workers",
	}
}

func (n accountNode) member(name string) any {
	switch name {
	case "burn":
		return n.a.Burn
	case "burn_limit":
		return limit(n.a.BurnLimit)
	case "day":
		return n.a.Day
	case "day_limit":
		return limit(n.a.DayLimit)
	case "gpus":
		return n.a.GPUs
	case "month":
		return n.a.Month
	case "month_limit":
		return limit(n.a.MonthLimit)
	case "pods":
		return n.a.Pods
	case "workers":
		return n.a.Workers
	default:
		return absent
	}
}

// limit is a budget, or null for none.
func limit(m *Money) any {
	if m == nil {
		return nil
	}
	return *m
}

type timeNode struct{ t time.Time }

func (timeNode) members() []string { return []string{"ns", "rfc3339"} }

func (n timeNode) member(name string) any {
	switch name {
	case "ns":
		return n.t.UnixNano()
	case "rfc3339":
		return n.t.UTC().Format(time.RFC3339Nano)
	default:
		return absent
	}
}

// catalogObject is the price list as policies see it.
func catalogObject(s *catalog.Snapshot) map[string]any {
	gpus := make(map[string]any, len(s.GPUs()))
	for _, g := range s.GPUs() {
		gpus[g.ID] = map[string]any{
			"name": g.Name, "pool": orNull(g.Pool), "manufacturer": g.Manufacturer, "memory_gb": g.MemoryGB,
			"secure": offerObject(g.Secure), "community": offerObject(g.Community),
			"serverless_usd": priceOrNull(g.Serverless),
		}
	}
	cpus := make(map[string]any, len(s.CPUs()))
	for _, c := range s.CPUs() {
		cpus[c.ID] = map[string]any{
			"name": c.Name, "group": c.Group, "min_vcpu": c.MinVCPU, "max_vcpu": c.MaxVCPU,
			"secure_usd_per_vcpu": priceOrNull(c.Secure), "serverless_usd_per_vcpu": priceOrNull(c.Serverless),
		}
	}
	pools := make(map[string]any, len(s.Pools()))
	for _, p := range s.Pools() {
		pools[p] = s.Members(p)
	}
	return map[string]any{"known": s != nil, "gpus": gpus, "cpus": cpus, "pools": pools}
}

func offerObject(o catalog.Offer) map[string]any {
	return map[string]any{"offered": o.Offered, "max_count": o.MaxCount, "usd": priceOrNull(o.Price)}
}

func priceOrNull(p catalog.Price) any {
	if !p.Known {
		return nil
	}
	return p.PerHour
}

func orNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// numberText is the JSON spelling of the whole numbers the document holds.
func numberText(n int64) string { return strconv.FormatInt(n, 10) }
