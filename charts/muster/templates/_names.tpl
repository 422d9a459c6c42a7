{{- define "muster.name" -}}
{{- default "lattice-operator" .Values.nameOverride | trunc 52 | trimSuffix "-" -}}
{{- end -}}

{{- define "muster.account" -}}
{{- default (.Values.serviceAccount.create | ternary (include "muster.name" .) "default") .Values.serviceAccount.name -}}
{{- end -}}

{{/* The user name of the operator. */}}
{{- define "muster.user" -}}
system:serviceaccount:{{ .Release.Namespace }}:{{ include "muster.account" . }}
{{- end -}}

{{/* The image, with a tag. Only the part after the last / may have one: a : before it separates a port. */}}
{{- define "muster.image" -}}
{{- if regexMatch "[:@]" (last (splitList "/" .Values.image)) -}}
{{ .Values.image }}
{{- else -}}
{{ .Values.image }}:{{ .Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{- define "muster.selector" -}}
app.kubernetes.io/name: muster
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "muster.labels" -}}
{{ include "muster.selector" . }}
app.kubernetes.io/component: operator
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version | replace "+" "_" }}
{{- end -}}

{{/* The configuration without empty entries, such as a section whose lines are all commented out. */}}
{{- define "muster.config" -}}
{{- $config := dict -}}
{{- range $section, $says := .Values.config -}}
{{- if kindIs "map" $says -}}
{{- $values := dict -}}
{{- range $key, $value := $says }}{{ if not (kindIs "invalid" $value) }}{{ $_ := set $values $key $value }}{{ end }}{{ end -}}
{{- $_ := set $config $section $values -}}
{{- else if not (kindIs "invalid" $says) -}}
{{- $_ := set $config $section $says -}}
{{- end -}}
{{- end -}}
{{- toYaml $config -}}
{{- end -}}

{{/* Fails if the same port is used twice. */}}
{{- define "muster.ports" -}}
{{- $ports := list (list "service.probePort" .Values.service.probePort) (list "service.internalPort" .Values.service.internalPort) -}}
{{- if .Values.rendezvous.enabled }}{{ $ports = append $ports (list "rendezvous.port" .Values.rendezvous.port) }}{{ end -}}
{{- if fromYamlArray (include "muster.webhooks" .) }}{{ $ports = append $ports (list "webhook.port" .Values.webhook.port) }}{{ end -}}
{{- $taken := dict -}}
{{- range $ports -}}
{{- $port := toString (last .) -}}
{{- if hasKey $taken $port -}}
{{- fail (printf "%s and %s are both %s: the operator serves each at a port of its own" (get $taken $port) (first .) $port) -}}
{{- end -}}
{{- $_ := set $taken $port (first .) -}}
{{- end -}}
{{- end -}}

{{/* The files of the webhooks that the configuration enables, as a list. */}}
{{- define "muster.webhooks" -}}
{{- $files := list -}}
{{- $config := include "muster.config" . | fromYaml -}}
{{- if dig "batchJob" "webhook" false $config }}{{ $files = append $files "webhook/job-hold.yaml" }}{{ end -}}
{{- if dig "placement" "webhook" false $config }}{{ $files = append $files "webhook/pod-places.yaml" }}{{ end -}}
{{- toYaml $files -}}
{{- end -}}
