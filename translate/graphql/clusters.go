package graphql

import (
	"context"
	"crypto/rand"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/translate"
	"github.com/tollgate-dev/tollgate/translate/legacy"
)

// memberWait is how long createCluster waits for its members to be listed, and
// memberPoll how often it looks.
const (
	memberWait = 8 * time.Second
	memberPoll = time.Second
	// clockSlack is how far the platform's clock and ours may differ.
	clockSlack = 2 * time.Second
)

// cluster is a cluster as a value of the schema.
type cluster struct {
	body any
	pods []any
}

func clusterTypes() map[string]objectType {
	text := func(name string) resolver {
		return get(func(c *cluster) any { return orNull(translate.Text(c.body, name)) })
	}
	return map[string]objectType{"Cluster": {
		"id": text("id"), "name": text("name"), "type": text("type"),
		"pods": get(func(c *cluster) any { return wrapPods(c.pods) }),
	}}
}

func createCluster(ctx context.Context, x *exchange, in input) (any, error) {
	a := in.object("input")
	b, err := clusterBody(ctx, x, a)
	if err != nil {
		return nil, err
	}
	call := request("createCluster", "", b, nil)
	if id := a.text("templateId"); id != "" {
		call.Origin = &translate.Origin{TemplateID: id}
	}
	out := translate.RunCandidates(ctx, x.Dialogue, translate.Plan{
		Candidates: []translate.Candidate{{Label: a.text("gpuTypeId"), Request: call}},
		Find:       x.findCluster,
		Claim:      func(ctx context.Context, r *translate.Response) bool { return x.claimCluster(ctx, r.Body) },
	})
	if out.Verdict != translate.Placed {
		return nil, outcomeFault(out, kindCluster)
	}
	c := &cluster{body: out.Response.Body}
	if in.Selects("pods") {
		c.pods = x.members(ctx, translate.Text(c.body, "id"), int(translate.Whole(b, "compute", "podCount")))
	}
	return c, nil
}

// findCluster looks for the cluster of a create whose answer was lost: one of the
// same name and size, made since the request came, that nobody was answered
// with.
func (x *exchange) findCluster(ctx context.Context, c *translate.Candidate) (*translate.Response, error) {
	resp, err := x.Send(ctx, request("listClusters", "", nil, nil), translate.Once)
	if err != nil {
		return nil, err
	}
	if !resp.OK() {
		return nil, refusal(resp, kindCluster)
	}
	since := x.Started().Add(-clockSlack)
	for _, found := range translate.Items(resp.Body, "clusters") {
		made, err := time.Parse(time.RFC3339Nano, translate.Text(found, "createdAt"))
		same := err == nil && !made.Before(since)
		for _, path := range [][]string{{"name"}, {"compute", "gpuTypeId"}} {
			same = same && translate.Text(found, path...) == translate.Text(c.Request.Body, path...)
		}
		if same && x.claimCluster(ctx, found) {
			return &translate.Response{Status: http.StatusCreated, Header: resp.Header, Body: found}, nil
		}
	}
	return nil, nil
}

func (x *exchange) claimCluster(ctx context.Context, body any) bool {
	return translate.Claim(ctx, x.Dialogue, "cluster/"+translate.Text(body, "id"))
}

func clusterBody(ctx context.Context, x *exchange, a args) (map[string]any, error) {
	if a.text("volumeKey") != "" {
		return nil, badInput("volumeKey: encrypted volumes are not available")
	}
	if a.text("gpuTypeId") == "" {
		return nil, badInput("gpuTypeId is required")
	}
	d := &deployment{x: x, a: without(a, "templateId", "compliance", "countryCode"), count: 1}
	if err := d.prepare(ctx); err != nil {
		return nil, err
	}
	b := d.body
	if id := a.text("templateId"); id != "" {
		t, err := x.fetch(ctx, "getTemplate", id, kindTemplate)
		if err != nil {
			return nil, err
		}
		spread(b, t, a)
		delete(b, "registry")
	}
	mounts, err := d.mounts(ctx)
	if err != nil {
		return nil, err
	}
	if mounts != nil {
		b["mounts"] = mounts
	}
	count, _ := a.int("gpuCountPerPod")
	pods, _ := a.int("podCount")
	b["name"] = orElse(a.text("clusterName"), "cluster-"+strings.ToLower(rand.Text()[:6]))
	b["type"] = orElse(a.text("type"), "TRAINING")
	b["compute"] = map[string]any{
		"gpuTypeId": a.text("gpuTypeId"), "gpuCountPerPod": translate.Int(count), "podCount": translate.Int(pods),
	}
	if len(d.place.centres) > 0 {
		b["dataCenterIds"] = translate.List(d.place.centres)
	}
	return b, nil
}

func without(a args, names ...string) args {
	out := args{}
	for name, v := range a {
		if !slices.Contains(names, name) {
			out[name] = v
		}
	}
	return out
}

// spread writes a template's container settings into a body; the caller's own
// win, environments are merged.
func spread(b map[string]any, t any, a args) {
	for _, name := range []string{"image", "args", "disk", "registry"} {
		v := translate.At(t, name)
		if _, given := b[name]; !given && v != nil && v != "" {
			b[name] = v
		}
	}
	if len(portList(a)) == 0 {
		b["ports"] = translate.List(translate.Texts(t, "ports"))
	}
	env := map[string]any{}
	for _, from := range []any{translate.At(t, "env"), b["env"]} {
		maps.Copy(env, translate.Members(from))
	}
	if len(env) > 0 {
		b["env"] = env
	}
	for _, name := range []string{"startSsh", "startJupyter"} {
		if _, given := b[name]; !given && translate.At(t, name) != nil {
			b[name] = translate.Flag(t, name)
		}
	}
}

// members waits until the cluster's pods are listed and have addresses, and
// returns what there is when the time is up, in the order of their ranks.
func (x *exchange) members(ctx context.Context, id string, want int) []any {
	var pods []any
	for waited := time.Duration(0); ; waited += memberPoll {
		resp, err := x.Send(ctx, request("listClusterPods", id, nil, nil), translate.Once)
		if err != nil || !resp.OK() {
			break
		}
		pods = slices.Clone(translate.Items(resp.Body, "pods"))
		ready := len(pods) >= want && !slices.ContainsFunc(pods, func(p any) bool { return translate.Text(p, "cluster", "ip") == "" })
		if ready || waited >= memberWait || x.Deps().Sleep(ctx, memberPoll) != nil {
			break
		}
	}
	slices.SortStableFunc(pods, func(a, b any) int {
		return int(translate.Whole(a, "cluster", "rank") - translate.Whole(b, "cluster", "rank"))
	})
	return pods
}

func deleteCluster(ctx context.Context, x *exchange, in input) (any, error) {
	id := in.object("input").text("id")
	if id == "" {
		return nil, badInput("id is required")
	}
	if err := x.Remove(ctx, legacy.About{Verb: "delete cluster", Noun: kindCluster}, "deleteCluster", id); err != nil {
		return nil, err
	}
	return true, nil
}
