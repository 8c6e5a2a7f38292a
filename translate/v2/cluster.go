package v2

import "github.com/tollgate-dev/tollgate/translate"

// Cluster is a view of a cluster, or of the body of a request that creates a cluster.
type Cluster struct{ Container }

// ClusterOf returns a view of a decoded cluster.
func ClusterOf(body any) Cluster { return Cluster{ContainerOf(body)} }

// Type returns the cluster type.
func (c Cluster) Type() string { return c.text("type") }

// SetType sets the cluster type.
func (c Cluster) SetType(kind string) { c.set(kind, "type") }

// SetCompute sets the GPU type, the GPUs per pod and the number of pods.
func (c Cluster) SetCompute(gpu string, perPod, pods int64) {
	c.set(map[string]any{"gpuTypeId": gpu, "gpuCountPerPod": translate.Int(perPod), "podCount": translate.Int(pods)}, "compute")
}
