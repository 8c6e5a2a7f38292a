package legacy

import (
	"context"
	"errors"

	"github.com/tollgate-dev/tollgate/translate"
	"github.com/tollgate-dev/tollgate/translate/v2"
)

// ClusterCreate holds the settings of a new cluster.
type ClusterCreate struct {
	// PodCreate holds the settings that all pods of the cluster share.
	PodCreate
	Type             string
	GPU              string
	GPUsPerPod, Pods int64
}

// CreateCluster creates a cluster. v2 does not accept a template for clusters, so the template's settings are copied into
// the body.
func (s *Session) CreateCluster(ctx context.Context, w *ClusterCreate) (v2.Cluster, error) {
	c := &podCreate{Session: s, want: w.PodCreate, inline: w.Template != ""}
	pod, err := c.body(ctx)
	if err != nil {
		return v2.Cluster{}, err
	}
	if w.Template != "" {
		delete(pod.Members, "registry")
	}
	b := v2.ClusterOf(pod.Members)
	b.SetType(w.Type)
	b.SetCompute(w.GPU, w.GPUsPerPod, w.Pods)
	if len(c.want.DataCenters) > 0 {
		pod.SetDataCenters(c.want.DataCenters)
	}
	call := Call("createCluster", "", b.Members)
	call.Origin = c.origin()
	made, err := s.Create(ctx, NounCluster.Purpose("create"), call)
	if r, ok := errors.AsType[*RefusedError](err); ok && r.Response != nil && translate.IsCapacity(r.Response.Detail()) {
		return v2.Cluster{}, &ShortageError{r.Response}
	}
	return v2.ClusterOf(made), err
}

// DeleteCluster deletes a cluster.
func (s *Session) DeleteCluster(ctx context.Context, id string) error {
	return s.Remove(ctx, NounCluster.Purpose("delete"), "deleteCluster", id)
}
