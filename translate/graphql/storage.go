package graphql

import (
	"context"

	"github.com/tollgate-dev/tollgate/translate"
	"github.com/tollgate-dev/tollgate/translate/legacy"
)

func storageTypes() map[string]objectType {
	text := func(name string) resolver {
		return get(func(m map[string]any) any { return orNull(translate.Text(m, name)) })
	}
	return map[string]objectType{
		"RegistryAuth": {
			"id": text("id"), "name": text("name"), "userId": userID,
		},
		"NetworkVolume": {
			"id": text("id"), "name": text("name"), "dataCenterId": text("dataCenter"),
			"size": get(func(m map[string]any) any { return translate.Whole(m, "size") }),
			"dataCenter": get(func(m map[string]any) any {
				if id := translate.Text(m, "dataCenter"); id != "" {
					return &dataCenter{id: id}
				}
				return nil
			}),
		},
	}
}

// required returns an error that names the first of the arguments that is missing or empty.
func required(a args, names ...string) error {
	for _, name := range names {
		if a.text(name) == "" {
			return badInput(name + " is required")
		}
	}
	return nil
}

func saveRegistryAuth(ctx context.Context, x *exchange, in input) (any, error) {
	a := in.object("input")
	if err := required(a, "name", "username", "password"); err != nil {
		return nil, err
	}
	return x.CreateRegistry(ctx, plain(a, map[string]string{"name": "name", "username": "username", "password": "password"}))
}

func volumeInput(a args) *legacy.VolumeInput {
	return &legacy.VolumeInput{
		Name: optional[string](a, "name"), DataCenter: optional[string](a, "dataCenterId"), SizeGB: optional[int64](a, "size"),
	}
}

func createNetworkVolume(ctx context.Context, x *exchange, in input) (any, error) {
	a := in.object("input")
	if err := required(a, "name", "dataCenterId"); err != nil {
		return nil, err
	}
	if size, given := a.int("size"); !given || size < 0 {
		return nil, badInput("size is required")
	}
	return x.CreateVolume(ctx, volumeInput(a))
}

func updateNetworkVolume(ctx context.Context, x *exchange, in input) (any, error) {
	a := in.object("input")
	if err := required(a, "id"); err != nil {
		return nil, err
	}
	w := volumeInput(a)
	w.SizeGB = nonZero(w.SizeGB)
	return x.UpdateVolume(ctx, a.text("id"), w)
}
