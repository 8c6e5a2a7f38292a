package graphql

import (
	"context"
	"slices"
	"strings"

	"github.com/tollgate-dev/tollgate/translate"
)

// placement is where a pod may go.
type placement struct {
	// pinned tells that centres is a restriction; an empty pinned list means
	// that no centre will do.
	pinned  bool
	centres []string
	country string
}

// intersect narrows the placement.
func (p *placement) intersect(centres []string) {
	if !p.pinned {
		p.pinned, p.centres = true, centres
		return
	}
	p.centres = slices.DeleteFunc(slices.Clone(p.centres), func(id string) bool { return !slices.Contains(centres, id) })
}

// impossible reports a restriction nothing meets.
func (p *placement) impossible() bool { return p.pinned && len(p.centres) == 0 }

// findPlace reads where the pod may go: the centres named, those that meet the
// compliance asked for, and that of the network volume.
func (d *deployment) findPlace(ctx context.Context) error {
	a := d.a
	if ids := translate.SplitList(a.text("dataCenterId")); len(ids) > 0 {
		d.place.intersect(ids)
	} else {
		country := strings.ToUpper(a.text("countryCode"))
		if country != "" && !isCountry(country) {
			return badInput("countryCode must be two letters")
		}
		d.place.country = country
	}
	if list := a.texts("compliance"); len(list) > 0 {
		centres, err := d.x.compliantCentres(ctx, list)
		if err != nil {
			return err
		}
		d.place.intersect(centres)
	}
	if id := a.text("networkVolumeId"); id != "" {
		volume, err := d.x.fetch(ctx, "getNetworkVolume", id, kindVolume)
		if err != nil {
			return err
		}
		named := len(translate.SplitList(a.text("dataCenterId"))) > 0
		centre := translate.Text(volume, "dataCenter")
		if named && !slices.Contains(d.place.centres, centre) {
			return badInput("the network volume is in data center " + centre + ", which dataCenterId excludes")
		}
		if centre != "" {
			d.place.intersect([]string{centre})
		}
	}
	if d.place.impossible() {
		return noCapacity(0)
	}
	return nil
}

func isCountry(s string) bool {
	return len(s) == 2 && s[0] >= 'A' && s[0] <= 'Z' && s[1] >= 'A' && s[1] <= 'Z'
}

// mounts decides the pod's volume. Without a size the template's mount applies;
// clients send 0, or a path alone, without meaning anything by it.
func (d *deployment) mounts(ctx context.Context) (map[string]any, error) {
	a := d.a
	at := a.text("volumeMountPath")
	if id := a.text("networkVolumeId"); id != "" {
		return map[string]any{"network": []any{map[string]any{"volumeId": id, "path": orElse(at, defaultPath)}}}, nil
	}
	size, _ := a.int("volumeInGb")
	if size < 0 {
		return nil, badInput("volumeInGb must not be negative")
	}
	if size > 0 {
		return persistent(d.x, size, orElse(at, defaultPath)), nil
	}
	id := a.text("templateId")
	if id == "" {
		return nil, nil
	}
	n, _, _ := translate.LoadNote[translate.TemplateNote](ctx, d.x.Dialogue, d.x.key(translate.KindTemplate, id))
	switch {
	case n.NoVolume:
		return nil, d.spreadTemplate(ctx, id)
	case at != "":
		return d.templateMount(ctx, id, at), nil
	}
	return nil, nil
}

// spreadTemplate writes the template's settings into the body and leaves its id
// out: its volume was taken away here, but v2 would still mount it.
func (d *deployment) spreadTemplate(ctx context.Context, id string) error {
	t, err := d.x.fetch(ctx, "getTemplate", id, kindTemplate)
	if err != nil {
		return err
	}
	spread(d.body, t, d.a)
	delete(d.body, "templateId")
	d.origin = &translate.Origin{TemplateID: id}
	return nil
}

// persistent is a mount of at least the smallest size v2 has.
func persistent(x *exchange, size int64, at string) map[string]any {
	if size < 10 {
		x.Warn("volumeInGb", "raised to the minimum of 10")
		size = 10
	}
	return map[string]any{"persistent": map[string]any{"size": translate.Int(size), "path": at}}
}

// templateMount keeps a template's volume and puts it elsewhere. A template
// that cannot be read leaves the decision to v2.
func (d *deployment) templateMount(ctx context.Context, id, at string) map[string]any {
	t, err := d.x.fetch(ctx, "getTemplate", id, kindTemplate)
	size := translate.Whole(t, "mounts", "persistent", "size")
	if err != nil || size == 0 || translate.Text(t, "mounts", "persistent", "path") == at {
		return nil
	}
	return map[string]any{"persistent": map[string]any{"size": translate.Int(size), "path": at}}
}
