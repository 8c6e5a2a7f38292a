package graphql

import (
	"cmp"
	"context"
	"crypto/rand"
	"slices"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/translate"
	"github.com/tollgate-dev/tollgate/translate/legacy"
	v2 "github.com/tollgate-dev/tollgate/translate/v2"
)

// Time that createCluster waits until the cluster's pods are listed, and the interval between checks.
const (
	memberWait = 8 * time.Second
	memberPoll = time.Second
)

// cluster is a cluster as a value of the schema.
type cluster struct {
	v2.Cluster
	pods []any
}

func clusterTypes() map[string]objectType {
	return map[string]objectType{"Cluster": {
		"id":   get(func(c *cluster) any { return orNull(c.ID()) }),
		"name": get(func(c *cluster) any { return orNull(c.Name()) }),
		"type": get(func(c *cluster) any { return orNull(c.Type()) }),
		"pods": get(func(c *cluster) any { return wrapPods(c.pods) }),
	}}
}

func createCluster(ctx context.Context, x *exchange, in input) (any, error) {
	a := in.object("input")
	switch {
	case a.text("volumeKey") != "":
		return nil, badInput("volumeKey: encrypted volumes are not available")
	case a.text("gpuTypeId") == "":
		return nil, badInput("gpuTypeId is required")
	}
	want := &legacy.ClusterCreate{Type: cmp.Or(a.text("type"), "TRAINING"), GPU: a.text("gpuTypeId")}
	want.PodInput, want.Template, want.NetworkVolume = newPodInput(a), a.text("templateId"), a.text("networkVolumeId")
	want.Name = legacy.Given(cmp.Or(a.text("clusterName"), "cluster-"+strings.ToLower(rand.Text()[:6])))
	want.DataCenters = translate.SplitList(a.text("dataCenterId"))
	want.GPUsPerPod, _ = a.int("gpuCountPerPod")
	want.Pods, _ = a.int("podCount")
	made, err := x.CreateCluster(ctx, want)
	if err != nil {
		return nil, err
	}
	c := &cluster{Cluster: made}
	if in.Selects("pods") {
		c.pods = x.members(ctx, made.ID(), int(want.Pods))
	}
	return c, nil
}

// members waits until all pods of the cluster are listed and have addresses, or the time is up. It returns the listed
// pods in order of rank.
func (x *exchange) members(ctx context.Context, id string, want int) []any {
	var pods []any
	for waited := time.Duration(0); ; waited += memberPoll {
		resp, err := x.Send(ctx, legacy.Call("listClusterPods", id, nil), translate.NoRetry)
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
