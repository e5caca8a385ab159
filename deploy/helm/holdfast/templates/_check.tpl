{{/* Refuses what cannot work, where the schema could not say why. */}}
{{- define "holdfast.check" -}}
{{- if dig "worker" "drain_timeout" "" .Values.config }}
{{- fail "config.worker.drain_timeout is for the chart to set: set api.drainSeconds, and drainSeconds of the workers" }}
{{- end }}
{{- if not (has "api" .Values.api.roles) }}
{{- fail "api.roles lacks api: the Service would lead to pods that do not serve it. For a Deployment without it, add an entry under workers, such as upkeep: {roles: [maintenance]}" }}
{{- end }}
{{- if has "worker" .Values.api.roles }}
{{- fail "api.roles has worker, but these pods have no plugins. Workers are entries under workers" }}
{{- end }}
{{- with .Values.api.autoscaling }}
{{- if and .enabled (gt (int .minReplicas) (int .maxReplicas)) }}
{{- fail (printf "api.autoscaling.minReplicas is %v, above maxReplicas, which is %v" .minReplicas .maxReplicas) }}
{{- end }}
{{- end }}
{{- $all := .Values.api.roles }}
{{- range $name, $own := .Values.workers }}
{{- if $own }}
{{- $worker := include "holdfast.worker" (dict "defaults" $.Values.workerDefaults "own" $own) | fromYaml }}
{{- $all = concat $all $worker.roles }}
{{- if and $worker.autoscaling.enabled (gt (int $worker.autoscaling.minReplicas) (int $worker.autoscaling.maxReplicas)) }}
{{- fail (printf "workers.%s.autoscaling.minReplicas is %v, above maxReplicas, which is %v" $name $worker.autoscaling.minReplicas $worker.autoscaling.maxReplicas) }}
{{- end }}
{{- if and (has "worker" $worker.roles) (not (get $worker "plugins")) }}
{{- fail (printf "workers.%s has the role worker and no plugins: name them, or set other roles" $name) }}
{{- end }}
{{- end }}
{{- end }}
{{- if not (has "maintenance" $all) }}
{{- fail "no pods have the role maintenance, so nobody would run schedules, retention and takeovers: add it to api.roles, or add an entry under workers, such as upkeep: {roles: [maintenance]}" }}
{{- end }}
{{- end }}
