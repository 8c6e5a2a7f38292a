package v2

import "github.com/tollgate-dev/tollgate/translate"

// Cluster is a cluster, or a body that makes one.
type Cluster struct{ Container }

// ClusterOf views a decoded cluster.
func ClusterOf(body any) Cluster { return Cluster{ContainerOf(body)} }

// Type returns the kind of cluster.
func (c Cluster) Type() string { return c.text("type") }

// SetType sets the kind of cluster.
func (c Cluster) SetType(kind string) { c.set(kind, "type") }

// SetCompute sets the compute of the cluster.
func (c Cluster) SetCompute(gpu string, perPod, pods int64) {
	c.set(map[string]any{"gpuTypeId": gpu, "gpuCountPerPod": translate.Int(perPod), "podCount": translate.Int(pods)}, "compute")
}
