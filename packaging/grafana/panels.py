"""What both dashboards are made of: panels, their places, variables, annotations, as Grafana writes them."""

HOST = 'instance=~"$instance"'
DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}
WIDTH = 24

GREEN, ORANGE, RED = "green", "orange", "red"


def targets(queries, kind):
    """Queries with their legends; a table asks for this moment only."""
    is_table = kind == "table"
    return [{"refId": chr(ord("A") + index), "datasource": DATASOURCE, "expr": expr, "legendFormat": legend,
             "instant": is_table or kind == "stat", "range": not is_table and kind != "stat",
             "format": "table" if is_table else "time_series"} for index, (expr, legend) in enumerate(queries)]


def thresholds(steps):
    """[(None, "green"), (1, "orange")] as Grafana writes it."""
    return {"mode": "absolute", "steps": [{"value": value, "color": color} for value, color in steps]}


def mappings(names):
    return [{"type": "value", "options": {value: {"text": text, "color": color, "index": index}
                                          for index, (value, (text, color)) in enumerate(names.items())}}]


def panel(title, kind, queries, unit="short", width=8, height=8, help="", steps=None, names=None, stack=False, share=False,
          hidden=()):
    defaults = {"unit": unit, "thresholds": thresholds(steps or [(None, GREEN)]), "mappings": mappings(names) if names else []}
    defaults["color"] = {"mode": "thresholds" if steps or names else "palette-classic"}
    if share:
        defaults |= {"min": 0, "max": 1}
    options, more = {}, {}
    if kind == "timeseries":
        defaults["custom"] = {"drawStyle": "line", "lineWidth": 1, "fillOpacity": 25 if stack else 8, "showPoints": "never",
                              "spanNulls": False, "stacking": {"mode": "normal" if stack else "none", "group": "A"},
                              "thresholdsStyle": {"mode": "line" if steps else "off"}}
        defaults["color"] = {"mode": "palette-classic"}
        options = {"legend": {"displayMode": "table", "placement": "bottom", "showLegend": True, "calcs": ["lastNotNull", "max"]},
                   "tooltip": {"mode": "multi", "sort": "desc"}}
    elif kind == "stat":
        options = {"reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False}, "colorMode": "background",
                   "graphMode": "none", "textMode": "auto", "justifyMode": "auto", "orientation": "auto"}
    elif kind == "state-timeline":
        defaults["custom"] = {"lineWidth": 0, "fillOpacity": 80}
        options = {"mergeValues": True, "showValue": "never", "rowHeight": 0.9,
                   "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True}, "tooltip": {"mode": "single"}}
    elif kind == "heatmap":
        options = {"calculate": True, "calculation": {"yBuckets": {"mode": "count", "value": "10"}}, "cellGap": 1,
                   "color": {"mode": "scheme", "scheme": "Spectral", "steps": 64}, "yAxis": {"unit": unit, "min": "0", "max": "1"},
                   "tooltip": {"mode": "single"}, "legend": {"show": True}}
    elif kind == "table":
        options = {"showHeader": True, "cellHeight": "sm", "footer": {"show": False}}
        more["transformations"] = [{"id": "organize", "options": {
            "excludeByName": {name: True for name in ("Time", "__name__", "job", *hidden)}}}]
    return {"title": title, "type": kind, "description": help, "datasource": DATASOURCE, "targets": targets(queries, kind),
            "fieldConfig": {"defaults": defaults, "overrides": []}, "options": options, **more, "_size": (width, height)}


def laid_out(rows):
    """The panels of [(title, function that makes them)] with places: from left to right, a new line where one does not fit."""
    panels, top = [], 0
    for title, make in rows:
        panels.append({"type": "row", "title": title, "collapsed": False, "panels": [],
                       "gridPos": {"x": 0, "y": top, "w": WIDTH, "h": 1}})
        top += 1
        left = line = 0
        for one in make():
            width, height = one.pop("_size")
            if left + width > WIDTH:
                left, top, line = 0, top + line, 0
            one["gridPos"] = {"x": left, "y": top, "w": width, "h": height}
            panels.append(one)
            left, line = left + width, max(line, height)
        top += line
    for number, one in enumerate(panels, start=1):
        one["id"] = number
    return panels


def label_variable(name, label, query):
    return {"name": name, "label": label, "type": "query", "datasource": DATASOURCE, "definition": query,
            "query": {"query": query, "refId": name}, "refresh": 2, "sort": 3, "multi": True, "includeAll": True, "allValue": ".*",
            "current": {"selected": True, "text": ["All"], "value": ["$__all"]}}


def text_variable(name, label, value):
    return {"name": name, "label": label, "type": "textbox", "query": value, "current": {"text": value, "value": value},
            "options": [{"selected": True, "text": value, "value": value}]}


def annotation(name, expr, color, **more):
    return {"name": name, "datasource": DATASOURCE, "enable": True, "hide": False, "iconColor": color, "expr": expr, **more}


def dashboard_of(uid, title, tags, rows, annotations, variables):
    """A whole dashboard; which Prometheus it asks is its first variable."""
    return {
        "uid": uid, "title": title, "tags": tags, "schemaVersion": 39, "version": 1,
        "editable": True, "graphTooltip": 1, "refresh": "5s", "time": {"from": "now-1h", "to": "now"}, "timezone": "browser",
        "timepicker": {"refresh_intervals": ["5s", "10s", "30s", "1m", "5m"]}, "links": [],
        "annotations": {"list": annotations},
        "templating": {"list": [
            {"name": "datasource", "label": "Prometheus", "type": "datasource", "query": "prometheus", "current": {}},
            *variables]},
        "panels": laid_out(rows),
    }
