{{- define "tollgate.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 63 | trimSuffix "-" }}{{ else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 63 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "tollgate.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{/* Labels of the Envoy pods, if the chart creates them. */}}
{{- define "tollgate.envoySelector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}-envoy
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "tollgate.labels" -}}
{{ include "tollgate.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "tollgate.config" -}}
{{- $config := .Values.config | fromYaml }}
{{- with $config.Error }}{{ fail (printf "config is not valid YAML: %s" .) }}{{ end }}
{{- $config | toJson }}
{{- end }}

{{/* The port of an address in the configuration. A loopback address is an error, because only the container itself could reach it. */}}
{{- define "tollgate.port" -}}
{{- if regexMatch "^(127\\.[0-9.]+|localhost|\\[(::1|::ffff:127\\.[0-9.]+)\\]):" (lower .address) }}
{{- fail (printf "%s is %s in config: a pod is not reachable on loopback, use 0.0.0.0 and the port" .setting .address) }}
{{- end }}
{{- regexFind "[0-9]+$" .address | required (printf "%s must contain a port in config, got %s" .setting .address) }}
{{- end }}

{{- define "tollgate.dataPort" -}}
{{- $config := include "tollgate.config" . | fromJson }}
{{- include "tollgate.port" (dict "setting" "listen" "address" ($config.listen | default "127.0.0.1:8080")) }}
{{- end }}

{{- define "tollgate.adminPort" -}}
{{- $config := include "tollgate.config" . | fromJson }}
{{- include "tollgate.port" (dict "setting" "admin.listen" "address" (dig "admin" "listen" "127.0.0.1:8081" $config)) }}
{{- end }}

{{/* The port of the gRPC server for Envoys, or empty if there is no such server. */}}
{{- define "tollgate.envoyPort" -}}
{{- $config := include "tollgate.config" . | fromJson }}
{{- with dig "envoy" "listen" "" $config }}{{ include "tollgate.port" (dict "setting" "envoy.listen" "address" .) }}{{ end }}
{{- end }}

{{/* The port on which Envoys listen, from the address of their node group. */}}
{{- define "tollgate.callersPort" -}}
{{- $config := include "tollgate.config" . | fromJson }}
{{- if not (include "tollgate.envoyPort" .) }}{{ fail "envoy.listen is required in config if envoy.enabled is set, because Envoys receive their configuration there" }}{{ end }}
{{- $all := dig "envoy" "xds" "groups" list $config }}
{{- $groups := list }}
{{- range $all }}{{ if or (eq .id $.Values.envoy.group) (and (not $.Values.envoy.group) (eq (len $all) 1)) }}{{ $groups = append $groups . }}{{ end }}{{ end }}
{{- if not $groups }}{{ fail (printf "envoy.group must be one of envoy.xds.groups in config, got %q" .Values.envoy.group) }}{{ end }}
{{- include "tollgate.port" (dict "setting" "envoy.xds.groups[].listen" "address" (first $groups).listen) }}
{{- end }}

{{/* The scheme with which the kubelet and Prometheus call the admin listener. */}}
{{- define "tollgate.adminScheme" -}}
{{- $config := include "tollgate.config" . | fromJson }}
{{- if dig "admin" "tls" "certificate" "" $config }}https{{ else }}http{{ end }}
{{- end }}

{{- define "tollgate.image" -}}
{{- if .Values.image.digest }}{{ .Values.image.repository }}@{{ .Values.image.digest }}{{ else }}{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ end }}
{{- end }}
