package clients

import (
	"os/exec"
	"testing"
)

// The MCP server works over either REST interface, with GraphQL beside it.
func TestMCPServer(t *testing.T) {
	t.Parallel()
	for _, rest := range []string{"v1", "v2"} {
		t.Run(rest, func(t *testing.T) {
			t.Parallel()
			server := installed(t, "mcp-server-3.4.0/node_modules/@runpod/mcp-server/dist/stdio.mjs")
			node, err := exec.LookPath("node")
			if err != nil {
				t.Fatal(err)
			}
			drive[report](t, newStack(t, standing()), node, "mcp.mjs", "SERVER="+server, "REST_VERSION="+rest).check(t, "mcp-"+rest+".json")
		})
	}
}
