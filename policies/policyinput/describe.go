package policyinput

import (
	"time"

	"github.com/tollgate-dev/tollgate/policies/catalog"
	"github.com/tollgate-dev/tollgate/policies/operation"
)

// version is the version of the document. It is increased when a member is removed or changes its meaning, but not when members are added.
const version = 1

// Document is an input in the form policies see it.
type Document struct {
	in   *Input
	kind operation.Kind
	verb operation.Verb
}

// part returns the document as an object.
func (d *Document) part() part { return part{documentShape, d} }

// self is the accessor for members stored in the same Go value as the enclosing object.
func self(d *Document) *Document { return d }

//nolint:gochecknoglobals // read-only: the description of the document
var documentShape = describe(
	"The document that policies receive for a call. Later releases may add fields, but do not change the meaning of existing fields within a version.",
	derived("version", "1", kind("integer"), func(*Document) any { return version }),
	within("request", "The call as a v2 call, regardless of the API the caller used.", requestShape, self),
	within("caller", "The caller.", callerShape, func(d *Document) *Caller { return &d.in.Caller }),
	within("resource", "The resource of the call.", resourceShape, self),
	&member{
		name: "catalog", doc: "The platform's price list; known is false without a recent list.", inner: catalogShape,
		value: func(of any) any { return pointer[Document](of).in.Catalog },
		read:  func(r *reader, of any, at string, given any) { pointer[Document](of).in.Catalog = r.catalog(at, given) },
	},
	within("cost", "The highest possible cost of the call.", costShape, func(d *Document) *Cost { return &d.in.Cost }),
	within("spend", "Current usage and past spending.", spendShape, func(d *Document) *Spend { return &d.in.Spend }),
	within("time", "The time of the decision.", timeShape, func(d *Document) *time.Time { return &d.in.Time }),
)

var requestShape = describe("",
	field("operation", "operationId of the v2 API, such as createPod, or operation of the run interface, such as run",
		func(d *Document) *string { return &d.in.Request.Operation }),
	derived("verb", "read, logs, create, update, delete, start, stop, restart, run or cancel", kind("string"),
		func(d *Document) any { return string(d.verb) }),
	derived("settles", "the caller chose the resulting state: evaluate resource.after", kind("boolean"),
		func(d *Document) any { return d.verb.HasResultState() }),
	field("method", "method of the v2 call", func(d *Document) *string { return &d.in.Request.Method }),
	field("path", "canonical path of the v2 call; for callEndpoint, as sent",
		func(d *Document) *string { return &d.in.Request.Path }),
	field("params", "decoded path parameters; for callEndpoint, path is as sent",
		func(d *Document) *map[string]string { return &d.in.Request.Params }),
	field("query", "parsed query parameters", func(d *Document) *map[string]any { return &d.in.Request.Query }),
	field("body", "body with the platform's defaults; null if there is no body",
		func(d *Document) *any { return &d.in.Request.Body }),
	derived("runs", "the language model output requested by each new run", listOf(runSchema()),
		func(d *Document) any { return d.runs() }),
	field("unknown", "fields of the body that the API description does not contain; resource.after and cost do not reflect these fields",
		func(d *Document) *map[string]any { return &d.in.Request.Unknown }),
	field("labels", "labels of the new resource from X-Tollgate-Labels",
		func(d *Document) *map[string]string { return &d.in.Request.Labels }),
	field("dialect", "v2, v1, graphql, run, or chat for calls answered by language models",
		func(d *Document) *string { return &d.in.Request.Dialect }),
)

var callerShape = describe("",
	field("org", "", func(c *Caller) *string { return &c.Org }),
	field("team", "", func(c *Caller) *string { return &c.Team }),
	field("key", "public identifier of the key", func(c *Caller) *string { return &c.Key }),
	field("roles", "", func(c *Caller) *[]string { return &c.Roles }),
)

var resourceShape = describe("",
	derived("kind", "pod, cluster, endpoint, template, network_volume, registry, secret, sandbox, delegation, account, catalog, billing, job, gateway or unknown",
		kind("string"), func(d *Document) any { return string(d.kind) }),
	field("current", "the current resource; null for a create", func(d *Document) *any { return &d.in.Resource.Current }),
	field("after",
		"the resulting resource, with its template or the change; null if none results",
		func(d *Document) *any { return &d.in.Resource.After }),
	derived("secrets", "placeholders for account secrets in resource.after: the name of the secret (\"\" if unknown) and the pointer",
		listOf(secretSchema()), func(d *Document) any { return d.secrets() }),
	optional("template", "The template to which the body refers; absent if none.", templateShape,
		func(d *Document) **Template { return &d.in.Resource.Template }),
	optional("owner", "The creator of the resource; absent if unknown.", ownerShape,
		func(d *Document) **Owner { return &d.in.Resource.Owner }),
)

var ownerShape = describe("",
	field("team", "empty if the organisation is the owner", func(o *Owner) *string { return &o.Team }),
	field("key", "empty if the organisation is the owner", func(o *Owner) *string { return &o.Key }),
)

var templateShape = describe("",
	field("id", "", func(t *Template) *string { return &t.ID }),
	field("own", "", func(t *Template) *bool { return &t.Own }),
	field("public", "", func(t *Template) *bool { return &t.Public }),
	field("record", "", func(t *Template) *any { return &t.Record }),
)

var costShape = describe("",
	field("known", "false if the price is unknown and the amounts are meaningless", func(c *Cost) *bool { return &c.Known }),
	field("usd_per_hour", "USD per hour for the whole resource", func(c *Cost) *Money { return &c.Hourly }),
	field("usd_per_gpu_hour", "USD per hour for the most expensive GPU; 0 without GPUs", func(c *Cost) *Money { return &c.PerGPU }),
	field("usd_per_run", "highest cost of a run in USD; 0 if unknown, and for other calls", func(c *Cost) *Money { return &c.Run }),
	field("run_free", "the organisation has declared the run free", func(c *Cost) *bool { return &c.FreeRun }),
	field("gpus", "highest number of GPUs at once", func(c *Cost) *int64 { return &c.GPUs }),
	field("basis", "how the cost was computed", func(c *Cost) *string { return &c.Basis }),
	field("reason", "why the price is unknown", func(c *Cost) *string { return &c.Reason }),
	field("as_of", "when the prices were read", func(c *Cost) *time.Time { return &c.AsOf }),
)

var spendShape = describe("",
	field("known", "false if the ledger is absent or unavailable, or if the call changes nothing",
		func(s *Spend) *bool { return &s.Known }),
	within("org", "Current usage and spending of the organisation.", accountShape, func(s *Spend) *Account { return &s.Org }),
	within("team", "Current usage and spending of the team.", accountShape, func(s *Spend) *Account { return &s.Team }),
	within("key", "Current usage and spending of the key.", accountShape, func(s *Spend) *Account { return &s.Key }),
)

var accountShape = describe("",
	field("burn", "USD per hour of running and reserved resources", func(a *Account) *Money { return &a.Burn }),
	field("burn_limit", "limit in USD per hour; null if not set", func(a *Account) **Money { return &a.BurnLimit }),
	field("day", "USD spent today", func(a *Account) *Money { return &a.Day }),
	field("day_limit", "limit in USD; null if not set", func(a *Account) **Money { return &a.DayLimit }),
	field("week", "USD spent this week", func(a *Account) *Money { return &a.Week }),
	field("week_limit", "limit in USD; null if not set", func(a *Account) **Money { return &a.WeekLimit }),
	field("month", "USD spent this month", func(a *Account) *Money { return &a.Month }),
	field("month_limit", "limit in USD; null if not set", func(a *Account) **Money { return &a.MonthLimit }),
	field("quarter", "USD spent this quarter", func(a *Account) *Money { return &a.Quarter }),
	field("quarter_limit", "limit in USD; null if not set", func(a *Account) **Money { return &a.QuarterLimit }),
	field("total", "USD spent since the first budget was set", func(a *Account) *Money { return &a.Total }),
	field("total_limit", "limit in USD; null if not set", func(a *Account) **Money { return &a.TotalLimit }),
	field("gpus", "GPUs that are running or may run", func(a *Account) *int64 { return &a.GPUs }),
	field("pods", "running pods", func(a *Account) *int64 { return &a.Pods }),
	field("workers", "serverless workers that may run", func(a *Account) *int64 { return &a.Workers }),
	field("volume_gb", "total size of network volumes in GB", func(a *Account) *int64 { return &a.VolumeGB }),
	field("sandboxes", "sandboxes that have not ended", func(a *Account) *int64 { return &a.Sandboxes }),
)

var timeShape = describe("",
	&member{
		name: "ns", doc: "nanoseconds since 1970", schema: kind("integer"),
		value: func(of any) any { return pointer[time.Time](of).UnixNano() },
		read: func(r *reader, of any, at string, given any) {
			if ns := number(r, at, given, whole); ns != 0 {
				*pointer[time.Time](of) = time.Unix(0, ns).UTC()
			}
		},
	},
	derived("rfc3339", "in UTC", kind("string"), func(t *time.Time) any { return t.UTC().Format(time.RFC3339Nano) }),
)

var catalogShape = describe("",
	derived("known", "", kind("boolean"), func(c *prices) any { return c.list != nil }),
	derived("digest", "digest of the price list for the decision log", kind("string"),
		func(c *prices) any { return c.list.Digest() }),
	each("gpus", "by GPU type id", gpuShape, func(c *prices) map[string]any {
		out := make(map[string]any, len(c.list.GPUs()))
		for _, g := range c.list.GPUs() {
			out[g.ID] = part{gpuShape, &g}
		}
		return out
	}),
	each("cpus", "by flavour", cpuShape, func(c *prices) map[string]any {
		out := make(map[string]any, len(c.list.CPUs()))
		for _, f := range c.list.CPUs() {
			out[f.ID] = part{cpuShape, &f}
		}
		return out
	}),
	derived("pools", "GPU type ids by serverless pool", mapOf(listOf(kind("string"))), func(c *prices) any {
		out := make(map[string]any, len(c.list.Pools()))
		for _, p := range c.list.Pools() {
			out[p] = c.list.PoolMembers(p)
		}
		return out
	}),
)

// prices adapts a price list to the functions that describe shapes. list may be nil.
type prices struct{ list *catalog.Snapshot }

// each describes a member that contains objects of one shape, by name.
func each[T any](name, doc string, inner *shape, value func(*T) map[string]any) *member {
	m := derived(name, doc, kind("object"), func(of *T) any { return value(of) })
	m.inner = inner
	return m
}

var gpuShape = describe("A GPU type.",
	derived("name", "", kind("string"), func(g *catalog.GPU) any { return g.Name }),
	derived("pool", "serverless pool", nullable("string"), func(g *catalog.GPU) any {
		if g.Pool == "" {
			return nil
		}
		return g.Pool
	}),
	derived("manufacturer", "", kind("string"), func(g *catalog.GPU) any { return g.Manufacturer }),
	derived("memory_gb", "", kind("integer"), func(g *catalog.GPU) any { return g.MemoryGB }),
	within("secure", offerShape.doc, offerShape, func(g *catalog.GPU) *catalog.Offer { return &g.Secure }),
	within("community", offerShape.doc, offerShape, func(g *catalog.GPU) *catalog.Offer { return &g.Community }),
	price("serverless_usd", "USD per worker GPU and hour; null if unknown", func(g *catalog.GPU) catalog.Price { return g.Serverless }),
)

var offerShape = describe("The offer of a cloud for a GPU type.",
	derived("offered", "", kind("boolean"), func(o *catalog.Offer) any { return o.Offered }),
	derived("max_count", "maximum GPUs per pod; 0 if unknown", kind("integer"),
		func(o *catalog.Offer) any { return o.MaxCount }),
	price("usd", "USD per GPU and hour; null if unknown", func(o *catalog.Offer) catalog.Price { return o.Price }),
)

var cpuShape = describe("A CPU flavour.",
	derived("name", "", kind("string"), func(c *catalog.CPU) any { return c.Name }),
	derived("group", "", kind("string"), func(c *catalog.CPU) any { return c.Group }),
	derived("min_vcpu", "", kind("integer"), func(c *catalog.CPU) any { return c.MinVCPU }),
	derived("max_vcpu", "", kind("integer"), func(c *catalog.CPU) any { return c.MaxVCPU }),
	price("secure_usd_per_vcpu", "", func(c *catalog.CPU) catalog.Price { return c.Secure }),
	price("serverless_usd_per_vcpu", "", func(c *catalog.CPU) catalog.Price { return c.Serverless }),
)
