package clients

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The page says of each program how many calls the tests make with it, and how many of
// these must be refused.
func TestTheFiguresOfThePage(t *testing.T) {
	page, err := os.ReadFile("../../docs/clients.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]string{
		"flash.json": "`flash` | 1.21.0", "flash_dev.json": "`flash init`, `flash dev` on that project | 1.21.0", "js_openai.json": "OpenAI, JavaScript | 7.57.0", "js_sdk.json": "JavaScript SDK, endpoints | 1.1.2",
		"mcp-4.json": "MCP server | 4.0.0", "mcp-v1.json": "MCP server, by v1 | 3.4.0", "mcp-v2.json": "MCP server, by v2 | 3.4.0", "openai.json": "OpenAI, Python | 3.54.0",
		"generated_go.json": "`oapi-codegen`, a generated client | 2.8.2", "generated_py.json": "`openapi-python-client`, a generated client | 0.29.1", "kestrel.json": "`kestrel-cloud-runpod`, v2 and jobs | 0.15.1",
	}
	rows["sdk2-dev.json"], rows["graphql-0.1.0.json"] = "Python SDK, development session and task | 2.0.0rc2", "generated GraphQL client | 0.1.0"
	for _, version := range sdks {
		rows["sdk-"+version+".json"] = "Python SDK, GraphQL | " + version
		rows["sdk_run-"+version+".json"] = "Python SDK, endpoints | " + version
	}
	files, err := filepath.Glob("testdata/*.json")
	if err != nil || len(files) != len(rows) {
		t.Errorf("%d reports and %d rows (%v)", len(files), len(rows), err)
	}
	for file, row := range rows {
		text, err := os.ReadFile(filepath.Join("testdata", file))
		if err != nil {
			t.Fatal(err)
		}
		var calls map[string]any
		if err := json.Unmarshal(text, &calls); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		refused := 0
		for _, want := range calls {
			if _, says := want.(string); says {
				refused++
			}
		}
		if line := fmt.Sprintf("| %s | %d | %d |\n", row, len(calls), refused); !strings.Contains(string(page), line) {
			t.Errorf("the page lacks %s", line)
		}
	}
}
