package clients

import (
	"os/exec"
	"testing"
)

// The MCP server works over either REST interface, with GraphQL beside it.
func TestMCPServer(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, version, script, rest, want string }{
		{"v1", "3.4.0", "mcp.mjs", "v1", "mcp-v1.json"},
		{"v2", "3.4.0", "mcp.mjs", "v2", "mcp-v2.json"},
		{"of today", "4.0.0", "mcp4.mjs", "v2", "mcp-4.json"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s, row := newStack(t, standing()), "MCP server, older"
			if tt.version == "4.0.0" {
				row = "MCP server, 4.0 and newer"
			}
			server := installed(t, "mcp-server-"+tt.version+"/node_modules/@runpod/mcp-server/dist/stdio.mjs")
			node, err := exec.LookPath("node")
			if err != nil {
				t.Fatal(err)
			}
			drive[report](t, s, node, tt.script, append(settings(t, row, s), "SERVER="+server, "REST_VERSION="+tt.rest)...).check(t, tt.want)
		})
	}
}
