package schema_test

import (
	"encoding/json"
	"fmt"

	"github.com/tollgate-dev/tollgate/gateway/schema"
)

func ExampleOperation_ValidateBody() {
	api, err := schema.Load()
	if err != nil {
		fmt.Println(err)
		return
	}
	body := map[string]any{
		"name": "a", "bogus": true,
		"gpu": map[string]any{"id": "NVIDIA L4", "count": json.Number("0")},
	}
	for _, v := range api.Operation("createPod").ValidateBody(body) {
		fmt.Println(v)
	}
	// Output:
	// $: additional properties 'bogus' not allowed
	// $: missing property 'image'
	// $.gpu.count: must be at least 1
}

func ExampleOperation_CheckRules() {
	api, err := schema.Load()
	if err != nil {
		fmt.Println(err)
		return
	}
	body := map[string]any{
		"name": "a", "image": "img:1",
		"cpu":   map[string]any{"id": "cpu5c", "vcpuCount": json.Number("6")},
		"ports": []any{"22/tcp", "53/udp"},
	}
	for _, v := range api.Operation("createPod").CheckRules(body) {
		fmt.Println(v.Status, v)
	}
	// Output:
	// 400 $.cpu.vcpuCount: must be a power of two
	// 400 $.ports[1]: must be a port and a protocol, '<number>/http' or '<number>/tcp'
}
