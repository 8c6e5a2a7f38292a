package platform

import "fmt"

// mounts is what is mounted into a pod: one kind, or nothing. A mount never changes: another takes its
// place.
type mounts struct {
	Persistent *persistentMount
	Network    *networkMount
}

type persistentMount struct {
	Size int64 // GB
	Path string
}

type networkMount struct{ VolumeID, Path string }

// mountsPatch is what a body says of mounts. An empty network list is told
// apart from none at all: on a change it is refused.
type mountsPatch struct {
	mounts
	emptyNetwork bool
}

// mounts reads the mounts member; network reports whether that kind is known here.
func (f fields) mounts(network bool) mountsPatch {
	var p mountsPatch
	known := []string{"persistent"}
	if network {
		known = append(known, "network")
	}
	m, ok := f.child("mounts", known...)
	if !ok {
		return p
	}
	if one, ok := m.child("persistent", "size", "path"); ok {
		one.require("size", "path")
		p.Persistent = &persistentMount{}
		p.Persistent.Size, _ = one.integer("size", 10, 1<<40)
		p.Persistent.Path, _ = one.text("path", 0)
	}
	if !network {
		return p
	}
	list, ok := typed[[]any](m, "network", "array")
	if len(list) > 1 {
		m.c.add(m.place("network"), "must have 1 item or fewer, but got %d", len(list))
	}
	p.emptyNetwork = ok && len(list) == 0
	for i, v := range list {
		one, ok := m.c.object(fmt.Sprintf("%s[%d]", m.place("network"), i), v, "volumeId", "path")
		if !ok {
			continue
		}
		one.require("volumeId", "path")
		p.Network = &networkMount{}
		p.Network.VolumeID, _ = one.text("volumeId", 0)
		p.Network.Path, _ = one.text("path", 0)
	}
	return p
}

// forCreate applies the rules of a new pod. supplied is the persistent mount of
// a template: it counts only where the body mounts nothing and the pod is no
// CPU pod.
func (p mountsPatch) forCreate(isCPU bool, cloud string, supplied *persistentMount) (mounts, error) {
	m := p.mounts
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
	after := before
	switch {
	case p.emptyNetwork:
		return after, badRequest("a network volume cannot be detached from a pod")
	case p.Persistent != nil && before.Persistent == nil, p.Network != nil && before.Network == nil:
		return after, badRequest("a kind of mount cannot be added after a pod was created")
	case p.Network != nil && p.Network.VolumeID != before.Network.VolumeID:
		return after, badRequest("a pod cannot change to another network volume")
	case p.Persistent != nil && p.Persistent.Size < before.Persistent.Size:
		return after, badRequest("a persistent mount cannot shrink")
	}
	if p.Persistent != nil {
		after.Persistent = p.Persistent
	}
	if p.Network != nil {
		after.Network = p.Network
	}
	return after, nil
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
