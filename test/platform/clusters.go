package platform

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// cluster is a group of identical pods in one data center. What it is doing
// follows from its members.
type cluster struct {
	ID, Name, Type string
	GPU            string
	PerPod         int
	Template       string   // empty is none
	Pods           []string // ids of the members by rank
	CreatedAt      time.Time
}

// networkHour is what a member's place on the overlay network costs per hour.
const networkHour = 0.01

// clusterRequest is the body of a create.
type clusterRequest struct {
	Name    string `body:"name" need:"yes" min:"1"`
	Kind    string `body:"type" need:"yes" enum:"APPLICATION TRAINING SLURM RAY"`
	Compute struct {
		GPU    string `body:"gpuTypeId" need:"yes" min:"1"`
		PerPod int    `body:"gpuCountPerPod" need:"yes" min:"1"`
		Pods   int    `body:"podCount" need:"yes" min:"2" max:"250"`
	} `body:"compute" need:"yes"`
	TemplateID string `body:"templateId" min:"1"`
	containerSettings

	DataCenters []string    `body:"dataCenterIds"`
	Mounts      mountsPatch `body:"mounts"`
	Jupyter     *bool       `body:"startJupyter"`
	SSH         *bool       `body:"startSsh"`
	settings    bool        // any that a template has, too
}

func (r *clusterRequest) check(f fields) { r.settings = slices.ContainsFunc(clusterSettings(), f.has) }

// member is the request for each member.
func (r *clusterRequest) member() *podRequest {
	return &podRequest{
		Name: r.Name, Cloud: secureCloud, GPU: &gpuRequest{ID: r.Compute.GPU, Count: r.Compute.PerPod}, DataCenters: r.DataCenters, Mounts: r.Mounts,
		Jupyter: r.Jupyter, SSH: r.SSH, containerPatch: containerPatch{containerSettings: r.containerSettings},
	}
}

// clusterRoutes is every operation on clusters.
func clusterRoutes() []route {
	return append(clusters().routes(), getRoute("/v2/clusters/{id}/pods", "listClusterPods", clusters().on((*exchange).clusterPodsLocked)))
}

func clusters() resource[cluster] {
	return resource[cluster]{
		one: "Cluster", many: "Clusters", path: "/v2/clusters", member: "clusters", noun: "cluster",
		table:  func(a *account) *table[cluster] { return &a.clusters },
		show:   (*exchange).showClusterLocked,
		id:     func(c *cluster) *string { return &c.ID },
		create: writes((*exchange).rentClusterLocked),
		update: writes(func(_ *exchange, c *cluster, want *clusterChange) (func(), error) {
			c.Name = want.Name
			return nil, nil
		}),
		remove: func(x *exchange, c *cluster) error {
			x.s.deleteClusterLocked(x.acct, c, x.now)
			return nil
		},
	}
}

// clusterSettings are the members of a create that a template excludes.
func clusterSettings() []string {
	return []string{"image", "args", "cmd", "entrypoint", "disk", "env", "ports", "mounts"}
}

// clusterChange is the body of a change.
type clusterChange struct {
	Name string `body:"name" min:"1"`
}

func (*clusterChange) check(f fields) { f.atLeastOne() }

// rentClusterLocked rents every member at once, all of them in one data center.
func (x *exchange) rentClusterLocked(c *cluster, r *clusterRequest) (then func(), err error) {
	t, err := x.clusterTemplateLocked(r)
	if err != nil {
		return nil, err
	}
	*c = cluster{Name: r.Name, Type: r.Kind, Template: r.TemplateID, GPU: r.Compute.GPU, PerPod: r.Compute.PerPod, CreatedAt: x.now}
	var model pod
	return func() {
		for rank := range r.Compute.Pods {
			p := model
			p.ID = x.s.newIDLocked(x.acct.pods.has)
			p.Name = r.Name + "-" + strconv.Itoa(rank)
			p.Container.Env = maps.Clone(model.Container.Env)
			p.Cluster = &membership{ID: c.ID, Rank: rank, Role: role(r.Kind, rank), IP: "10.65." + strconv.Itoa(rank/250) + "." + strconv.Itoa(rank%250+2)}
			c.Pods = append(c.Pods, p.ID)
			x.acct.pods.add(p.ID, &p)
			x.s.openPodLocked(x.acct, &p, x.now)
		}
	}, x.rentLocked(&model, r.member(), t, r.Compute.Pods)
}

// role is the part a member of a managed cluster plays.
func role(kind string, rank int) string {
	roles := map[string][2]string{"SLURM": {"SLURM_CONTROLLER", "SLURM_COMPUTE"}, "RAY": {"RAY_HEAD", "RAY_WORKER"}}
	return roles[kind][min(rank, 1)]
}

// clusterTemplateLocked is the template of the members: with a templateId, it alone says
// what they run, and brings the registry credential.
func (x *exchange) clusterTemplateLocked(r *clusterRequest) (*template, error) {
	switch {
	case r.TemplateID == "":
		return &template{Container: container{Image: "registry.platform.test/cluster-node:1", Disk: defaultDisk}}, nil
	case r.settings:
		return nil, badRequest("templateId excludes " + strings.Join(clusterSettings(), ", "))
	default:
		return x.templateLocked(r.TemplateID, false)
	}
}

// members are the cluster's pods that still exist, by rank.
func (a *account) members(c *cluster) []*pod {
	var out []*pod
	for _, id := range c.Pods {
		if p := a.pods.get(id); p != nil {
			out = append(out, p)
		}
	}
	return out
}

// chargeClusterLocked makes a cluster cost what its members are doing.
func (s *Server) chargeClusterLocked(a *account, id string, now time.Time) {
	var sum amounts
	if c := a.clusters.get(id); c != nil {
		for _, p := range a.members(c) {
			r := p.rate()
			sum[clusterGPUAmount] += r[podGPUAmount]
			sum[clusterDiskAmount] += r[podDiskAmount]
			if p.holdsMachine() {
				sum[clusterNetworkAmount] += networkHour
			}
		}
	}
	a.chargeLocked(meterCluster, id, sum, now)
}

func (s *Server) deleteClusterLocked(a *account, c *cluster, now time.Time) {
	members := a.members(c)
	a.clusters.remove(c.ID)
	for _, p := range members {
		s.terminatePodLocked(a, p, now)
	}
	s.chargeClusterLocked(a, c.ID, now)
}

func (x *exchange) showClusterLocked(c *cluster) object {
	members := x.acct.members(c)
	o := object{
		"id", c.ID, "name", c.Name, "type", c.Type, "pods", x.summary(members), "createdAt", c.CreatedAt,
		"compute",
		object{"gpuTypeId", c.GPU, "gpuCountPerPod", c.PerPod, "podCount", len(c.Pods)},
	}
	if c.Template != "" {
		o = append(o, "template", c.Template)
	}
	if len(members) > 0 && members[0].placed(x.now) {
		first := members[0]
		network := object{"cidr", "10.65.0.0/16", "vxlanId", int(digest(c.ID)%16_000_000) + 1, "vxlanPort", 4789}
		o = append(o, "dataCenterId", first.DC, "network", network, "primary", x.primary(first))
	}
	return o
}

// summary counts members by status; a status that no member has is left out.
func (x *exchange) summary(members []*pod) object {
	byStatus := map[string]int{}
	for _, p := range members {
		byStatus[p.statusAt(x.now)]++
	}
	counts := object{}
	for _, status := range slices.Sorted(maps.Keys(byStatus)) {
		counts = append(counts, status, byStatus[status])
	}
	return object{"total", len(members), "byStatus", counts}
}

// primary is the entry node, with its address while it runs sshd.
func (x *exchange) primary(p *pod) object {
	o := object{"podId", p.ID, "status", p.statusAt(x.now)}
	if port := p.publicPort("22/tcp"); port > 0 && p.statusAt(x.now) == statusRunning {
		o = append(o, "sshEndpoint", p.publicIP()+":"+strconv.Itoa(port))
	}
	return o
}

func (x *exchange) clusterPodsLocked(c *cluster) (reply, error) {
	return ok(object{"pods", objects(x.acct.members(c), x.showPod)}), nil
}
