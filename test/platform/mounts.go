package platform

import "cmp"

// mounts is what is mounted into a pod: one kind, or nothing. A mount never changes: another takes its
// place.
type mounts struct {
	Persistent *persistentMount
	Network    *networkMount
}

type persistentMount struct {
	Size int64  `body:"size" need:"yes" min:"10"` // GB
	Path string `body:"path" need:"yes"`
}

type networkMount struct {
	VolumeID string `body:"volumeId" need:"yes"`
	Path     string `body:"path" need:"yes"`
}

// mountsPatch is what a body says of mounts. An empty network list is told
// apart from none at all: on a change it is refused.
type mountsPatch struct {
	Persistent *persistentMount `body:"persistent"`
	Networks   []*networkMount  `body:"network" most:"1"`
}

// network is the only network mount, or nil.
func (p mountsPatch) network() *networkMount {
	if len(p.Networks) == 0 {
		return nil
	}
	return p.Networks[0]
}

// forCreate applies the rules of a new pod. supplied is the persistent mount of
// a template: it counts only where the body mounts nothing and the pod is no
// CPU pod.
func (p mountsPatch) forCreate(isCPU bool, cloud string, supplied *persistentMount) (mounts, error) {
	m := mounts{Persistent: p.Persistent, Network: p.network()}
	switch {
	case m.Persistent != nil && m.Network != nil:
		return m, badRequest("mounts.persistent and mounts.network exclude each other")
	case m.Persistent != nil && isCPU:
		return m, badRequest("mounts.persistent is not available on CPU pods")
	case m.Network != nil && cloud == communityCloud:
		return m, badRequest("network volumes are available on the SECURE cloud only")
	}
	if m.Persistent == nil && m.Network == nil && supplied != nil && !isCPU {
		m.Persistent = supplied
	}
	return m, nil
}

// forUpdate applies the rules of a change to what was mounted before: no kind
// comes or goes, the volume stays, a path may change, a persistent mount may
// grow.
func (p mountsPatch) forUpdate(before mounts) (mounts, error) {
	network := p.network()
	switch {
	case p.Networks != nil && network == nil:
		return before, badRequest("a network volume cannot be detached from a pod")
	case p.Persistent != nil && before.Persistent == nil, network != nil && before.Network == nil:
		return before, badRequest("a kind of mount cannot be added after a pod was created")
	case network != nil && network.VolumeID != before.Network.VolumeID:
		return before, badRequest("a pod cannot change to another network volume")
	case p.Persistent != nil && p.Persistent.Size < before.Persistent.Size:
		return before, badRequest("a persistent mount cannot shrink")
	}
	return mounts{cmp.Or(p.Persistent, before.Persistent), cmp.Or(network, before.Network)}, nil
}

func (m mounts) record() (o object) {
	if p := m.Persistent; p != nil {
		o = append(o, "persistent", object{"size", p.Size, "path", p.Path})
	}
	if n := m.Network; n != nil {
		o = append(o, "network", []object{{"volumeId", n.VolumeID, "path", n.Path}})
	}
	return o
}
