{{/* What the pods of all roles have in common. */}}

{{- define "holdfast.selector" -}}
app.kubernetes.io/name: holdfast
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "holdfast.labels" -}}
{{ include "holdfast.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "holdfast.tag" -}}
{{ .Values.image.tag | default (print "v" .Chart.AppVersion) }}
{{- end }}

{{/* A worker with what workerDefaults says where the worker says nothing. Helm's merge would
take replicas: 0 and enabled: false for nothing. */}}
{{- define "holdfast.worker" -}}
{{- $worker := deepCopy .defaults }}
{{- range $key, $value := .own }}
{{- if kindIs "map" $value }}
{{- range $inner, $replaced := $value }}
{{- $_ := set (get $worker $key) $inner $replaced }}
{{- end }}
{{- else }}
{{- $_ := set $worker $key $value }}
{{- end }}
{{- end }}
{{- toYaml $worker }}
{{- end }}

{{- define "holdfast.pod" -}}
automountServiceAccountToken: false
{{- with .Values.serviceAccountName }}
serviceAccountName: {{ . }}
{{- end }}
{{- with .Values.imagePullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
# Otherwise Kubernetes sets HOLDFAST_… for Services called holdfast…, and the orchestrator
# refuses to start with a variable that it does not know.
enableServiceLinks: false
{{- with get .Values "podSecurityContext" }}
securityContext: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* Where pods run, of the API, the workers or the Job. */}}
{{- define "holdfast.placement" -}}
{{- with .priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* The seconds of a duration such as 1m30s, rounded up. */}}
{{- define "holdfast.seconds" -}}
{{- $units := dict "ms" 1 "s" 1000 "m" 60000 "h" 3600000 }}
{{- $sum := 0 }}
{{- range regexFindAll "[0-9]+[a-z]+" . -1 }}
{{- $sum = add $sum (mul (regexFind "^[0-9]+" . | atoi) (get $units (regexFind "[a-z]+$" .))) }}
{{- end }}
{{- div (add $sum 999) 1000 }}
{{- end }}

{{/* What a pod needs after its drain: worker.kill_grace for handlers that ignore the cancel, and
time to write the last results. */}}
{{- define "holdfast.ending" -}}
{{- add (include "holdfast.seconds" (dig "worker" "kill_grace" "5s" .Values.config)) 10 }}
{{- end }}

{{- define "holdfast.confined" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{- define "holdfast.database" -}}
- name: HOLDFAST_DATABASE__URL
  valueFrom: {secretKeyRef: {name: {{ .urlSecret.name | quote }}, key: {{ .urlSecret.key | quote }}}}
{{- if .directUrlSecret.name }}
- name: HOLDFAST_DATABASE__DIRECT_URL
  valueFrom: {secretKeyRef: {name: {{ .directUrlSecret.name | quote }}, key: {{ .directUrlSecret.key | quote }}}}
{{- end }}
{{- if .caSecret.name }}
- {name: PGSSLMODE, value: verify-full}
- {name: PGSSLROOTCERT, value: /etc/holdfast-database/ca.crt}
{{- end }}
{{- end }}

{{/* What the Job has instead of config.yaml, which is not there yet. 0 is a cell. */}}
{{- define "holdfast.migrateEnv" -}}
{{ include "holdfast.database" .Values.database }}
{{- $cell := dig "database" "cell" nil .Values.config }}
{{- if not (kindIs "invalid" $cell) }}
- {name: HOLDFAST_DATABASE__CELL, value: {{ int $cell | quote }}}
{{- end }}
{{- with .Values.env }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "holdfast.databaseVolume" -}}
{{- if .caSecret.name -}}
- name: database-ca
  secret: {secretName: {{ .caSecret.name | quote }}, items: [{key: {{ .caSecret.key | quote }}, path: ca.crt}]}
{{- end }}
{{- end }}

{{- define "holdfast.databaseMount" -}}
{{- if .caSecret.name -}}
- {name: database-ca, mountPath: /etc/holdfast-database, readOnly: true}
{{- end }}
{{- end }}

{{- define "holdfast.env" -}}
{{ include "holdfast.database" .Values.database }}
{{- with .Values.database.replicaUrlSecret }}{{ if .name }}
- name: HOLDFAST_DATABASE__REPLICA_URL
  valueFrom: {secretKeyRef: {name: {{ .name | quote }}, key: {{ .key | quote }}}}
{{- end }}{{ end }}
- name: HOLDFAST_SECURITY__PASSWORD
  valueFrom: {secretKeyRef: {name: {{ .Values.operatorSecret.name | quote }}, key: {{ .Values.operatorSecret.key | quote }}}}
{{- with .Values.env }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "holdfast.probes" -}}
# Alive even while it waits for the database or for the schema.
livenessProbe:
  httpGet: {path: /healthz, port: http}
  periodSeconds: 10
  timeoutSeconds: 4
readinessProbe:
  httpGet: {path: /readyz, port: http}
  periodSeconds: 5
  timeoutSeconds: 4
{{- end }}
