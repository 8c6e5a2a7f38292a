package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
)

// export is an environment variable of a client. Its value is the URL of path on the gateway or, if isKey is true, the key. A leading "_"
// in the name is replaced with the platform's name in upper case.
type export struct {
	name, path string
	isKey      bool
}

// clientExports returns the variables of common clients, by client. See docs/tasks/tools.md.
func clientExports(endpoint string) map[string][]export {
	key := export{"_API_KEY", "", true}
	return map[string][]export{
		"tollgate": {{gatewayEnv, "", false}, {"TOLLGATE_KEY", "", true}},
		"openai":   {{"OPENAI_BASE_URL", "/v2/" + endpoint + "/openai/v1", false}, {"OPENAI_API_KEY", "", true}},
		"python":   {{"_API_BASE_URL", "", false}, {"_ENDPOINT_BASE_URL", "/v2", false}, key},
		"cli": {
			{"_API_URL", "/v1", false},
			{"_GRAPHQL_URL", "/graphql", false},
			{"_REST_V2_URL", "/v2", false},
			{"_INVOKE_URL", "/v2", false},
			key,
		},
		"flash": {
			{"_API_BASE_URL", "", false},
			{"_REST_API_URL", "/v1", false},
			{"_ENDPOINT_BASE_URL", "/v2", false},
			{"_HAPI_URL", "", false},
			key,
		},
		"mcp": {
			{"_API_BASE_URL", "", false},
			{"_REST_API_URL", "/v1", false},
			{"_REST_V2_API_URL", "/v2", false},
			{"_SERVERLESS_API_URL", "/v2", false},
			{"_PUBLIC_GRAPHQL_URL", "/graphql", false},
			{"_AUTHED_GRAPHQL_URL", "/graphql", false},
			key,
		},
		"rust": {{"_REST_URL", "/v1", false}, {"_API_URL", "/v2", false}, key},
	}
}

// brandName matches platform names that can begin the name of an environment variable.
var brandName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9]*$`)

type envFlags struct {
	callerClient

	brand, endpoint string
}

func newEnv() *cobra.Command {
	f := new(envFlags)
	clients := slices.Sorted(maps.Keys(clientExports("")))
	cmd := &cobra.Command{
		Use: "env CLIENT", Short: "Print the environment variables that make a client use the gateway", Args: named([]string{"CLIENT"}),
		Example: "  tollgate env openai --endpoint k2n5x8 --gateway https://gateway.example\n  eval \"$(tollgate env cli --brand acme)\"",
		Long: `Prints shell commands that set the environment variables of a client to the addresses
of the gateway and to your key or login token. Clients: ` + strings.Join(clients, ", ") + `.
Except for openai and tollgate, the variables begin with the platform's name, which is
set by --brand or ` + brandEnv + `. When a token expires, run the command again. For
tollgate, no token is printed, because its commands read and refresh the token.`,
		RunE: action(func(cmd *cobra.Command, args []string) error {
			f.notes = cmd.ErrOrStderr()
			return f.print(cmd.Context(), args[0], cmd.OutOrStdout())
		}),
	}
	f.flags(cmd)
	cmd.Flags().StringVar(&f.brand, "brand", os.Getenv(brandEnv), "name of the platform, which is the prefix of the client's variables")
	cmd.Flag("brand").DefValue = "" // help must not depend on the environment
	cmd.Flags().StringVar(&f.endpoint, "endpoint", "", "ID of the endpoint for an OpenAI client")
	cmd.ValidArgsFunction = cobra.FixedCompletions(clients, cobra.ShellCompDirectiveNoFileComp)
	return cmd
}

func (f *envFlags) print(ctx context.Context, client string, w io.Writer) error {
	all := clientExports(f.endpoint)
	list, ok := all[client]
	switch {
	case !ok:
		return usagef("%s", adminapi.UnknownName("client", client, slices.Sorted(maps.Keys(all))))
	case client == "openai" && f.endpoint == "":
		return usagef("OpenAI clients use a single endpoint: specify the endpoint with --endpoint")
	case strings.HasPrefix(list[0].name, "_") && !brandName.MatchString(f.brand):
		return usagef("variables of %s begin with the name of the platform: set the name with --brand, in letters and digits", client)
	}
	key, err := f.key(ctx)
	if err != nil {
		return err
	}
	for _, e := range list {
		if client == "tollgate" && e.isKey && f.byLogin {
			continue // a token in a variable could not be refreshed
		}
		name, value := e.name, urlOf(f.base)+e.path
		if strings.HasPrefix(name, "_") {
			name = strings.ToUpper(f.brand) + name
		}
		if e.isKey {
			value = key
		}
		if _, err := fmt.Fprintf(w, "export %s=%s\n", name, quoted(value)); err != nil {
			return err
		}
	}
	return nil
}

// quoted quotes a text as one word of a POSIX shell.
func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
