"""What a model decided stands no more, and what a person had decided before stands again; an index on what people said."""

STATEMENTS = (
    """DELETE FROM standing WHERE side = 'adjudication' AND event IN (
        SELECT id FROM events WHERE kind = 'adjudication' AND source = 'model')""",
    """INSERT INTO standing (side, topic, document, other, aspect, assessor, repeat, event, time)
        SELECT 'adjudication', e.topic, e.document, '', e.aspect, '', e.repeat, e.id, e.time FROM events e
        WHERE e.kind = 'adjudication' AND e.source <> 'model' AND e.id NOT IN (SELECT id FROM withdrawn)
        AND NOT EXISTS (SELECT 1 FROM standing s WHERE s.side = 'adjudication' AND s.topic = e.topic
            AND s.document = e.document AND s.other = '' AND s.aspect = e.aspect AND s.assessor = '' AND s.repeat = e.repeat)
        AND NOT EXISTS (SELECT 1 FROM events o WHERE o.topic = e.topic AND o.document = e.document AND o.aspect = e.aspect
            AND o.repeat = e.repeat AND o.kind = 'adjudication' AND o.source <> 'model'
            AND o.id NOT IN (SELECT id FROM withdrawn) AND (o.time > e.time OR (o.time = e.time AND o.id > e.id)))""",
    "CREATE INDEX events_people ON events (kind, seq) WHERE source <> 'model'",
)
