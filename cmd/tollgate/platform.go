package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/gateway/schema"
	"github.com/tollgate-dev/tollgate/test/platform"
)

func newPlatform() *cobra.Command {
	var listen string
	cmd := &cobra.Command{
		Use:   "platform",
		Short: "Run the platform emulator",
		Long: `Runs a stand-in for the platform's v2 API that rents nothing and costs nothing.
It keeps everything in memory and takes the key ` + platform.DefaultKey + `.`,
		Args: cobra.NoArgs,
		RunE: action(func(cmd *cobra.Command, _ []string) error {
			emulator, err := newEmulator()
			if err != nil {
				return err
			}
			l, err := net.Listen("tcp", listen) //nolint:noctx // opened once, at start
			if err != nil {
				return fmt.Errorf("listen: %w", err)
			}
			if _, err := fmt.Fprintf(cmd.OutOrStdout(), "platform emulator on http://%s, key %s\n", l.Addr(), platform.DefaultKey); err != nil {
				return err
			}
			return serveEmulator(cmd.Context(), l, emulator)
		}),
	}
	cmd.Flags().StringVar(&listen, "listen", "127.0.0.1:8090", "address to listen on")
	return cmd
}

// newEmulator makes an emulator that serves our description of the API.
func newEmulator(accounts ...platform.Account) (*platform.Server, error) {
	api, err := schema.Load()
	if err != nil {
		return nil, err
	}
	return platform.New(platform.Options{Accounts: accounts, OpenAPI: api.Document()})
}

// serveEmulator serves until ctx ends.
func serveEmulator(ctx context.Context, l net.Listener, emulator *platform.Server) error {
	s := &http.Server{Handler: emulator, ReadHeaderTimeout: 5 * time.Second}
	stopped := make(chan error, 1)
	go func() {
		<-ctx.Done()
		err := emulator.Close() // ends open log streams first
		stopped <- errors.Join(err, s.Close())
	}()
	if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("emulator: %w", err)
	}
	return <-stopped
}
