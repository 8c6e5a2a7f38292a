package v1

import (
	"context"
	"fmt"
	"net/http"

	"github.com/tollgate-dev/tollgate/translate"
)

// maxVolume is v1's limit for network volumes in GB.
const maxVolume = 4000

var volumeCreateForm = form{
	{name: "name", kind: aText, fate: Mapped, required: true},
	{name: "size", kind: aWhole, fate: Mapped, required: true, atMost: maxVolume},
	{name: "dataCenterId", kind: aText, fate: Mapped, required: true},
}

var volumeUpdateForm = form{
	{name: "name", kind: aText, fate: Mapped},
	{name: "size", kind: aWhole, fate: Mapped, atMost: maxVolume},
}

// networkVolume writes a volume in v1's shape: exactly these four keys.
func networkVolume(v any) map[string]any {
	return map[string]any{
		"id": translate.Text(v, "id"), "name": translate.Text(v, "name"),
		"size": translate.Whole(v, "size"), "dataCenterId": translate.Text(v, "dataCenter"),
	}
}

func createNetworkVolume(ctx context.Context, r *request) (*reply, error) {
	name, centre, size := r.body.text("name"), r.body.text("dataCenterId"), r.body.whole("size", 0)
	if size < minVolume {
		r.Warn("size", "raised to 10, the smallest volume")
		size = minVolume
	}
	volume, err := r.create(ctx, creation{
		about: about{
			verb: "create network volume", noun: "network volume", given: true,
			missing: fmt.Sprintf("create network volume: Data center %q not found", centre),
		},
		call: &translate.Request{Operation: "createNetworkVolume", Body: map[string]any{
			"name": name, "size": translate.Int(size), "dataCenter": centre,
		}},
		list: "listNetworkVolumes", member: "networkVolumes", kind: "networkvolume",
		same: func(listed any) bool {
			return translate.Text(listed, "name") == name && translate.Text(listed, "dataCenter") == centre &&
				translate.Whole(listed, "size") == size
		},
	})
	if err != nil {
		return nil, err
	}
	return ok(networkVolume(volume)), nil
}

func listNetworkVolumes(ctx context.Context, r *request) (*reply, error) {
	volumes, err := r.list(ctx, about{verb: "list network volumes", noun: "network volume"}, "listNetworkVolumes", "networkVolumes")
	if err != nil {
		return nil, err
	}
	return ok(each(volumes, networkVolume)), nil
}

func getNetworkVolume(ctx context.Context, r *request) (*reply, error) {
	w := about{verb: "get network volume", noun: "network volume"}
	volume, err := r.read(ctx, w, "getNetworkVolume", r.param("networkVolumeId"))
	if err != nil {
		return nil, err
	}
	return ok(networkVolume(volume)), nil
}

// updateNetworkVolume serves PATCH and POST .../update.
func updateNetworkVolume(ctx context.Context, r *request) (*reply, error) {
	id := r.param("networkVolumeId")
	w := about{verb: "update network volume", noun: "network volume"}
	patch := map[string]any{}
	if name := r.body.text("name"); name != "" {
		patch["name"] = name
	}
	if r.body.has("size") {
		size := r.body.whole("size", 0)
		if size < minVolume {
			return nil, bad("size: must be at least %d", minVolume)
		}
		patch["size"] = translate.Int(size)
	}
	if len(patch) == 0 {
		return getNetworkVolume(ctx, r)
	}
	volume, err := r.send(ctx, w, with(byID("updateNetworkVolume", id), patch), translate.Change)
	if err != nil {
		return nil, err
	}
	return ok(networkVolume(volume)), nil
}

func deleteNetworkVolume(ctx context.Context, r *request) (*reply, error) {
	w := about{verb: "delete network volume", noun: "network volume"}
	if err := r.remove(ctx, w, "deleteNetworkVolume", r.param("networkVolumeId")); err != nil {
		return nil, err
	}
	return &reply{status: http.StatusNoContent}, nil
}
