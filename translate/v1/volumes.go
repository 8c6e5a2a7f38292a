package v1

import (
	"context"

	"github.com/tollgate-dev/tollgate/translate/legacy"
	"github.com/tollgate-dev/tollgate/translate/v2"
)

// maxVolume is v1's maximum size of network volumes in GB.
const maxVolume = 4000

var volumeCreateForm = form{
	{name: "name", required: true},
	{name: "size", kind: kindInteger, required: true, atMost: maxVolume},
	{name: "dataCenterId", v2: "dataCenter", required: true},
}

var volumeUpdateForm = form{
	{name: "name"}, {name: "size", kind: kindInteger, atMost: maxVolume},
}

// networkVolume returns a volume in v1's form, which has exactly these four members.
func networkVolume(body any) map[string]any {
	v := v2.NetworkVolumeOf(body)
	return map[string]any{"id": v.ID(), "name": v.Name(), "size": v.Size(), "dataCenterId": v.DataCenter()}
}

func (r *request) volumeInput() *legacy.VolumeInput {
	return &legacy.VolumeInput{
		Name: optional[string](r.body, "name"), DataCenter: optional[string](r.body, "dataCenterId"), SizeGB: optional[int64](r.body, "size"),
	}
}

func createNetworkVolume(ctx context.Context, r *request) (*reply, error) {
	return resultReply(networkVolume)(r.CreateVolume(ctx, r.volumeInput()))
}

// updateNetworkVolume serves PATCH and POST .../update.
func updateNetworkVolume(ctx context.Context, r *request) (*reply, error) {
	return resultReply(networkVolume)(r.UpdateVolume(ctx, r.id, r.volumeInput()))
}
