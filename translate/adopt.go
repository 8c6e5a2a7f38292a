package translate

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// clockSlack is how far the platform's clock and ours may differ, its whole
// seconds included, when a pod's age is compared with the start of a request.
const clockSlack = 2 * time.Second

// PodPlan is a Plan of createPod calls that finds lost pods: one of the same
// name, image and compute, created since the request began, that no other
// request was answered with.
func PodPlan(d *Dialogue, candidates []Candidate) Plan {
	return Plan{
		Candidates: candidates,
		Find: func(ctx context.Context, c *Candidate) (*Response, error) {
			return FindPod(ctx, d, c.Request.Body, d.Started())
		},
		Claim: func(ctx context.Context, r *Response) bool { return Claim(ctx, d, Text(r.Body, "id")) },
	}
}

// FindPod looks for a pod that can be what the create body asked for, made since
// then, and claims it. It returns nil when there is none, and an error when it
// cannot tell.
func FindPod(ctx context.Context, d *Dialogue, body any, since time.Time) (*Response, error) {
	resp, err := d.Send(ctx, &Request{Operation: "listPods"}, Read)
	if err != nil {
		return nil, err
	}
	if !resp.OK() {
		return nil, fmt.Errorf("list pods: status %d", resp.Status)
	}
	since = since.Add(-clockSlack)
	for _, pod := range Items(resp.Body, "pods") {
		if samePod(pod, body, since) && Claim(ctx, d, Text(pod, "id")) {
			return &Response{Status: 201, Header: resp.Header, Body: pod}, nil
		}
	}
	return nil, nil
}

// samePod reports whether the pod can be what the create body asked for.
func samePod(pod, body any, since time.Time) bool {
	created, err := time.Parse(time.RFC3339Nano, Text(pod, "createdAt"))
	if err != nil || created.Before(since) || Text(pod, "id") == "" {
		return false
	}
	for _, path := range [][]string{{"name"}, {"image"}, {"cloud"}, {"gpu", "id"}, {"cpu", "id"}} {
		if want := Text(body, path...); want != "" && want != Text(pod, path...) {
			return false
		}
	}
	count := Whole(body, "gpu", "count")
	return count == 0 || count == Whole(pod, "gpu", "count")
}

// Claim marks a created resource as answered and reports whether no request had
// it before. A failing store counts as none: a second resource would cost more
// than a shared answer.
func Claim(ctx context.Context, d *Dialogue, id string) bool {
	deps := d.Deps()
	key := Key{Account: d.Account(), Kind: KindClaim, ID: id}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), memoryTime)
	defer cancel()
	added, err := deps.Store.Add(ctx, key, json.RawMessage("true"), ClaimTTL)
	if err != nil {
		deps.Logger.WarnContext(ctx, "translation memory not written", "kind", KindClaim, "error", err)
		return true
	}
	return added
}
