package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/google/licensecheck"
)

// sourcesOf returns the directories of modules by path@version.
func sourcesOf(ctx context.Context) (map[string]string, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{with .Replace}}{{.Path}}@{{.Version}}{{else}}{{.Path}}@{{.Version}}{{end}} {{.Dir}}", "all").Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	sources := make(map[string]string)
	for line := range strings.Lines(string(out)) {
		module, dir, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		sources[module] = dir
	}
	return sources, nil
}

var licenceFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|unlicen[cs]e)([-.].*)?$`)

// covered is the share of a file, in percent, that the licences found in it make up.
const covered = 75

// licencesIn returns the SPDX identifiers of the licences of the sources in dir.
func licencesIn(dir string) ([]string, error) {
	if dir == "" {
		return nil, errors.New("its sources are not downloaded")
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, f := range files {
		if f.IsDir() || !licenceFile.MatchString(f.Name()) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			return nil, err
		}
		found := licensecheck.Scan(text)
		if found.Percent < covered {
			return nil, fmt.Errorf("%s is of no known licence", f.Name())
		}
		for _, m := range found.Match {
			ids = append(ids, m.ID)
		}
	}
	if len(ids) == 0 {
		return nil, errors.New("has no licence")
	}
	slices.Sort(ids)
	return slices.Compact(ids), nil
}

// licences are all those that apply.
func licences(ids ...string) *cdx.Licenses {
	var all cdx.Licenses
	for _, id := range ids {
		all = append(all, cdx.LicenseChoice{License: &cdx.License{ID: id}})
	}
	return &all
}
