// Command sbom writes the bill of materials of a Go program in CycloneDX: the
// modules it was linked from, as the program itself names them, each with the
// licences that its sources come with. It is run in the module that the program is
// of, whose modules are downloaded.
//
//	go run ./test/sbom -version v1.2.3 bin/tollgate > tollgate.cdx.json
package main

import (
	"context"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

func main() {
	version := flag.String("version", "", "version of the program")
	flag.Parse()
	if err := run(context.Background(), os.Stdout, *version, flag.Arg(0)); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

// run writes the bill of the program at path. It depends on the program and its
// sources alone: no time, no serial number.
func run(ctx context.Context, w io.Writer, version, path string) error {
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return err
	}
	sources, err := sourcesOf(ctx)
	if err != nil {
		return err
	}
	bom := cdx.NewBOM()
	main := cdx.Component{
		BOMRef: "pkg:golang/" + info.Main.Path + "@" + version, Type: cdx.ComponentTypeApplication, Name: info.Main.Path, Version: version,
		Licenses: licences("Apache-2.0"),
	}
	main.PackageURL = main.BOMRef
	bom.Metadata = &cdx.Metadata{Component: &main}
	std := "pkg:golang/std@" + strings.TrimPrefix(info.GoVersion, "go")
	components := []cdx.Component{{
		BOMRef: std, Type: cdx.ComponentTypeLibrary, Name: "std", Version: strings.TrimPrefix(info.GoVersion, "go"), PackageURL: std,
		Licenses: licences("BSD-3-Clause"),
	}}
	for _, m := range info.Deps {
		c, err := component(m, sources)
		if err != nil {
			return err
		}
		components = append(components, c)
	}
	refs := make([]string, len(components))
	for i, c := range components {
		refs[i] = c.BOMRef
	}
	bom.Components = &components
	bom.Dependencies = &[]cdx.Dependency{{Ref: main.BOMRef, Dependencies: &refs}}
	return cdx.NewBOMEncoder(w, cdx.BOMFileFormatJSON).SetPretty(true).Encode(bom)
}

// component is a module. Its hash is the one of go.sum: of the list of its files
// and their SHA-256.
func component(m *debug.Module, sources map[string]string) (cdx.Component, error) {
	if m.Replace != nil {
		m = m.Replace
	}
	url := "pkg:golang/" + m.Path + "@" + m.Version
	sum, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(m.Sum, "h1:"))
	if err != nil {
		return cdx.Component{}, fmt.Errorf("%s: %w", m.Path, err)
	}
	ids, err := licencesIn(sources[m.Path+"@"+m.Version])
	if err != nil {
		return cdx.Component{}, fmt.Errorf("%s: %w", m.Path, err)
	}
	return cdx.Component{
		Licenses: licences(ids...),
		BOMRef:   url, Type: cdx.ComponentTypeLibrary, Name: m.Path, Version: m.Version, PackageURL: url,
		Hashes: &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: hex.EncodeToString(sum)}},
	}, nil
}
